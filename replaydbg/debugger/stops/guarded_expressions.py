"""Expressions rewritten so that evaluating them in the program's own process cannot change the program.

The core refuses to run Python code of the program meanwhile (replaydbg/native/engine/passages.c). What is left is C
code: operators and attributes of built-in types read only, but a called function may do anything, iterating over an
iterator uses it up, and a missing key of a `defaultdict` is added. So calls, iterated values and items go through the
guards of replaydbg/engine/probe/passages.py, which refuse what they do not know.
"""

from __future__ import annotations

import ast

CALL, STILL, ITEM, SLICE = "__replaydbg_call", "__replaydbg_still", "__replaydbg_item", "__replaydbg_slice"

_ITERATOR_MAKERS = ("enumerate", "reversed", "zip")
"""Functions whose results are iterators that nothing else has; another function may return one of the program's."""

_MAKERS = (ast.GeneratorExp, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp)
"""Calls that make a new value: using up that one changes nothing of the program."""


def guarded(expression: str) -> str | None:
    """Return `expression` with guards; None: it is not an expression, or cannot be guarded."""
    try:
        tree = ast.parse(expression.strip(), "<expression>", "eval")
        source = ast.unparse(ast.fix_missing_locations(_Guards().visit(tree)))
        compile(source, "<expression>", "eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return source


class _Guards(ast.NodeTransformer):
    """Puts the guards in."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if any(isinstance(each, ast.Starred) for each in node.args) or any(each.arg is None for each in node.keywords):
            raise ValueError("what is unpacked may be iterators")
        self.generic_visit(node)
        arguments = [self._still(each) for each in node.args]
        keywords = [ast.keyword(each.arg, self._still(each.value)) for each in node.keywords]
        return ast.Call(_name(CALL), [node.func, *arguments], keywords)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        return ast.Call(_name(ITEM), [node.value, node.slice], [])

    def visit_Slice(self, node: ast.Slice) -> ast.AST:
        self.generic_visit(node)
        bounds = (each if each is not None else ast.Constant(None) for each in (node.lower, node.upper, node.step))
        return ast.Call(_name(SLICE), list(bounds), [])

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        pairs = zip(node.ops, node.comparators, strict=True)
        node.comparators = [self._still(value) if isinstance(op, (ast.In, ast.NotIn)) else value for op, value in pairs]
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.iter = self._still(node.iter)
        return node

    def _still(self, value: ast.expr) -> ast.expr:
        if isinstance(value, (ast.Constant, ast.JoinedStr, *_MAKERS)) or _makes_iterator(value):
            return value
        return ast.Call(_name(STILL), [value], [])

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        self.generic_visit(node)
        return ast.Starred(self._still(node.value), ast.Load())

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        self.generic_visit(node)
        if None in node.keys:
            raise ValueError("a mapping of any type is unpacked")
        return node


def _makes_iterator(value: ast.expr) -> bool:
    """Whether it is a guarded call of one of these functions; another one of that name is refused by the guard."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name) or value.func.id != CALL:
        return False
    called = value.args[0]
    return isinstance(called, ast.Name) and called.id in _ITERATOR_MAKERS


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())
