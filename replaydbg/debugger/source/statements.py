"""The statement that failed: the names that it reads, and the condition that it asserts."""

from __future__ import annotations

import ast
import builtins
from typing import TypeGuard

MOST_NAMES = 6
_OPERATORS: dict[str, type[ast.cmpop]] = {
    "Equal": ast.Eq,
    "NotEqual": ast.NotEq,
    "Less": ast.Lt,
    "LessEqual": ast.LtE,
    "Greater": ast.Gt,
    "GreaterEqual": ast.GtE,
    "In": ast.In,
    "NotIn": ast.NotIn,
    "Is": ast.Is,
    "IsNot": ast.IsNot,
    "ListEqual": ast.Eq,
    "DictEqual": ast.Eq,
    "TupleEqual": ast.Eq,
    "SetEqual": ast.Eq,
}
"""The operators of unittest's comparing methods, by their names without `assert`."""
_OF_NONE = {"IsNone": ast.Is, "IsNotNone": ast.IsNot}


def names_in_line(source: str, line: int) -> list[str]:
    """Return the variables, attributes and items that the statement around a line reads, in order.

    Without what it calls. Of those within one another it is the whole.
    """
    statement = _statement(source, line)
    if statement is None:
        return []
    called = {id(each.func) for each in ast.walk(statement) if isinstance(each, ast.Call)}
    inner = {id(each.value) for each in ast.walk(statement) if isinstance(each, ast.Attribute) or _is_item(each)}
    found: dict[str, tuple[int, int]] = {}
    for each in ast.walk(statement):
        if not isinstance(each, (ast.Name, ast.Attribute, ast.Subscript)) or not isinstance(each.ctx, ast.Load):
            continue
        node: ast.expr = each
        if id(each) in called and isinstance(each, ast.Attribute):
            node = each.value  # `order.total()` reads `order`
        elif id(each) in called or id(each) in inner:
            continue
        text = ast.unparse(node)
        if text in ("self", "cls") or hasattr(builtins, text):
            continue  # one of its attributes is the interesting part
        if _leads_somewhere(node):
            found.setdefault(text, (node.lineno, node.col_offset))
    return sorted(found, key=lambda name: found[name])[:MOST_NAMES]


def what_has(place: str) -> str:
    """Return what has the attribute or the item that `place` names; empty: it is a variable."""
    node = ast.parse(place, mode="eval").body
    return ast.unparse(node.value) if isinstance(node, (ast.Attribute, ast.Subscript)) else ""


def _is_item(node: ast.AST) -> TypeGuard[ast.Subscript]:
    """Whether it is an item whose key is a literal or a name: nothing is computed."""
    if not isinstance(node, ast.Subscript):
        return False
    key = node.slice.operand if isinstance(node.slice, ast.UnaryOp) else node.slice
    if isinstance(key, ast.Constant):
        return isinstance(key.value, (int, str))
    return isinstance(key, (ast.Name, ast.Attribute)) and _leads_somewhere(key)


def _leads_somewhere(node: ast.expr) -> bool:
    """Whether it is a variable, or attributes and items lead to it from one."""
    while isinstance(node, ast.Attribute) or _is_item(node):
        node = node.value
    return isinstance(node, ast.Name)


def assertion_in_line(source: str, line: int) -> str:
    """Return the expression that the statement around a line claims to be true; empty if it claims nothing."""
    statement = _statement(source, line)
    if isinstance(statement, ast.Assert):
        return ast.unparse(statement.test)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return _assertion_of_call(statement.value)
    return ""


def _assertion_of_call(call: ast.Call) -> str:
    """Return what a method of unittest's claims."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    kind = name.removeprefix("assert")
    if kind == name or call.keywords or not call.args:
        return ""
    first, *rest = call.args
    claim: ast.expr | None = None
    if kind == "True":
        claim = first
    elif kind == "False":
        claim = ast.UnaryOp(ast.Not(), first)
    elif kind in _OF_NONE:
        claim = ast.Compare(first, [_OF_NONE[kind]()], [ast.Constant(None)])
    elif kind in _OPERATORS and rest:
        claim = ast.Compare(first, [_OPERATORS[kind]()], rest[:1])
    return ast.unparse(claim) if claim is not None else ""


def _statement(source: str, line: int) -> ast.stmt | None:
    """Return the innermost statement around a line, unless that is a definition."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    best: ast.stmt | None = None
    for each in ast.walk(tree):
        if not isinstance(each, ast.stmt) or not each.lineno <= line <= (each.end_lineno or each.lineno):
            continue
        if best is None or each.lineno >= best.lineno:
            best = each
    return None if isinstance(best, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else best
