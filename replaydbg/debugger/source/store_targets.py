"""Assignments to variables, attributes and items in a source file, as far as its syntax shows them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from replaydbg.classes import dataclass

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_WITH_BODIES = (ast.For, ast.AsyncFor, ast.With, ast.AsyncWith)
_PERHAPS = (ast.BoolOp, ast.IfExp, ast.Compare, *_COMPREHENSIONS)
"""Expressions that may skip a part of themselves, with a `:=` in it."""


@dataclass(frozen=True, slots=True)
class StoreTarget:
    """One target of one statement."""

    first: int
    """The lines of the target."""
    last: int
    name: str
    """Of a variable: its name. Of an attribute: that one. Empty of an item."""
    container: str | None
    """The owner of the attribute or item, as an expression; None of a variable; empty: it would have to be computed."""
    key: str | None
    """The key of the item, as an expression; None: it is not an item; empty: it would have to be computed."""
    computed_key: str
    """The key as an item of `__key__`, with whatever a copy of the program can compute when the line begins; may be
    empty."""
    constant: object
    """That key where it is a constant; None: it is not."""
    is_sure: bool
    """Whether beginning its line always stores to it."""
    body: tuple[int, int]
    """Of a `for` or a `with`, whose line runs again without a store: the lines that run after a store; else zeros."""
    may_wait: bool
    """Whether the statement awaits or yields: its line has begun long before."""


def stores_in(source: str) -> tuple[StoreTarget, ...]:
    """Return all stores of a file; none if it cannot be parsed."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return ()
    found = [pair for statement in _statements(tree) for pair in _of_statement(statement)]
    stored: dict[int, set[str]] = {}
    for statement, target, _ in found:
        if isinstance(target, ast.Name):
            stored.setdefault(statement.lineno, set()).add(target.id)
    inline = {id(each) for each in ast.walk(tree) if isinstance(each, ast.stmt) for each in _beside(each)}
    return tuple(
        _store(statement, target, is_sure and id(statement) not in inline, stored.get(statement.lineno, set()))
        for statement, target, is_sure in found
    )


def _statements(tree: ast.AST) -> Iterator[ast.stmt]:
    return (each for each in ast.walk(tree) if isinstance(each, ast.stmt) and not isinstance(each, _SCOPES))


def _beside(statement: ast.stmt) -> Iterator[ast.stmt]:
    """Yield the statements on the line of the compound statement around them: it may begin without them."""
    for block in ("body", "orelse", "finalbody"):
        inner = getattr(statement, block, ())
        for each in inner if isinstance(inner, list) else ():
            if isinstance(each, ast.stmt) and each.lineno == statement.lineno:
                yield each


def _of_statement(statement: ast.stmt) -> Iterator[tuple[ast.stmt, ast.expr, bool]]:
    """Yield the targets in a statement, without those of statements in it, and whether each is stored to for sure."""
    if isinstance(statement, ast.AnnAssign) and statement.value is None:
        return
    pending: list[tuple[ast.AST, bool]] = [(statement, True)]
    while pending:
        node, is_sure = pending.pop()
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            yield statement, node, is_sure
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case, *_SCOPES)):
                continue
            if isinstance(child, ast.comprehension):
                pending += [(child.iter, False), *((each, False) for each in child.ifs)]
                continue
            pending.append((child, is_sure and not isinstance(child, _PERHAPS)))


def _store(statement: ast.stmt, target: ast.expr, is_sure: bool, stored: set[str]) -> StoreTarget:
    name = target.id if isinstance(target, ast.Name) else target.attr if isinstance(target, ast.Attribute) else ""
    container = target.value if isinstance(target, (ast.Attribute, ast.Subscript)) else None
    key = target.slice if isinstance(target, ast.Subscript) else None
    body = (0, 0)
    if isinstance(statement, _WITH_BODIES):
        body = (statement.body[0].lineno, statement.body[-1].end_lineno or 0)
    return StoreTarget(
        first=target.lineno,
        last=target.end_lineno or target.lineno,
        name=name,
        container=_simple(container, stored) if container is not None else None,
        key=_simple(key, stored) if key is not None else None,
        computed_key=_computed(key, stored) if key is not None else "",
        constant=_constant(key),
        is_sure=is_sure,
        body=body,
        may_wait=any(isinstance(each, (ast.Await, ast.Yield, ast.YieldFrom)) for each in _own_parts(statement)),
    )


def _own_parts(statement: ast.stmt) -> Iterator[ast.AST]:
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        yield node
        pending += [each for each in ast.iter_child_nodes(node) if not isinstance(each, (ast.stmt, *_SCOPES))]


def _simple(node: ast.expr, stored: set[str]) -> str:
    """Return it as text if it can be looked up when its line begins: no function runs, and no name of it is stored to.

    Empty if not.
    """
    inner = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Tuple, ast.BinOp, ast.UnaryOp)
    allowed = (*inner, ast.operator, ast.unaryop, ast.expr_context)
    parts = list(ast.walk(node))
    is_simple = all(isinstance(each, allowed) for each in parts)
    is_kept = not any(isinstance(each, ast.Name) and each.id in stored for each in parts)
    return ast.unparse(node) if is_simple and is_kept else ""


def _computed(node: ast.expr, stored: set[str]) -> str:
    """Return it as text if its line stores to no name of it, and it does not wait."""
    waiting = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
    is_other = any(
        isinstance(each, waiting) or (isinstance(each, ast.Name) and each.id in stored) for each in ast.walk(node)
    )
    # Slices are no expressions by themselves.
    return "" if is_other else ast.unparse(ast.Subscript(ast.Name("__key__", ast.Load()), node, ast.Load()))


def _constant(key: ast.expr | None) -> object:
    try:
        return ast.literal_eval(key) if key is not None else None
    except (ValueError, TypeError):
        return None
