"""Expressions that may name a cell or a column of a data frame, such as `app.sales.loc[3, 'amount']`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from replaydbg.classes import dataclass
from replaydbg.engine.cell_queries import CellStep

_WRAPPERS = frozenset({"Timestamp", "int64", "int32", "float64", "str_"})
"""Types whose values are written as a call, and named by its argument."""


@dataclass(frozen=True, slots=True)
class CellExpression:
    """A parsed expression; which of its steps lead to a data frame only the program knows."""

    source: str
    name: str
    """The variable that it begins with."""
    steps: tuple[CellStep, ...]
    sources: tuple[str, ...]
    """The expression up to each step, the variable first."""


def parse_cell(source: str, value_of: Callable[[str], str]) -> CellExpression | None:
    """Return what `source` names, if that may be a cell; None: it has no items, or is no such expression.

    `value_of` returns the value of a computed label as text.
    """
    try:
        node: ast.expr = ast.parse(source.strip(), mode="eval").body
    except SyntaxError:
        return None
    steps: list[CellStep] = []
    nodes: list[ast.expr] = [node]
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            steps.append(("attribute", node.attr))
        elif isinstance(node, ast.Subscript):
            label = _label(node.slice, value_of)
            if label is None:
                return None
            node.slice = ast.parse(repr(label[0]), mode="eval").body
            steps.append(("item", label[0]))
        else:
            return None
        node = node.value
        nodes.append(node)
    if not steps:
        return None
    sources = tuple(ast.unparse(each) for each in reversed(nodes))
    return CellExpression(source.strip(), node.id, tuple(reversed(steps)), sources)


def _label(node: ast.expr, value_of: Callable[[str], str]) -> tuple[Any] | None:
    """Return the value of an index, if it is a plain one; of others the text of the value is read."""
    found = _plain(node)
    if found is None and not isinstance(node, ast.Slice):
        try:
            found = _plain(ast.parse(value_of(ast.unparse(node)), mode="eval").body)
        except SyntaxError:
            return None
    return found


def _plain(node: ast.expr) -> tuple[Any] | None:
    if any(isinstance(each, ast.Slice) for each in ast.walk(node)):
        return None
    try:
        value = ast.literal_eval(_Unwrapped().visit(ast.parse(ast.unparse(node), mode="eval").body))
    except (ValueError, TypeError):
        return None
    return (value,) if _is_label(value) else None


def _is_label(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_label, value))
    return value is None or isinstance(value, (int, float, str, bytes))


class _Unwrapped(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return node.args[0] if name in _WRAPPERS and len(node.args) == 1 and not node.keywords else node
