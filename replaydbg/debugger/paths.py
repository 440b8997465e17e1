"""Expressions that name a place: a variable, and the attributes and items that lead from it to a value."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from replaydbg.engine.messages import PathStep
from replaydbg.errors import UsageError


@dataclass(frozen=True, slots=True)
class PlaceExpression:
    """A parsed place."""

    source: str
    name: str
    """The variable that it begins with."""
    steps: tuple[PathStep, ...]

    @property
    def keys(self) -> list[tuple[str, object]]:
        """The steps as `inside.py` is told them."""
        return keys_of(self.steps)


def keys_of(steps: tuple[PathStep, ...]) -> list[tuple[str, object]]:
    """Return steps as `inside.py` is told them."""
    return [
        ("attribute", each.attribute)
        if each.attribute is not None
        else ("item", each.index if each.index is not None else each.key)
        for each in steps
    ]


def parse_place(source: str) -> PlaceExpression:
    """Return what `source`, such as `app.cache['x'][3].price`, names. Raises UsageError for any other expression."""
    try:
        node: ast.expr = ast.parse(source.strip(), mode="eval").body
    except SyntaxError as error:
        raise UsageError(f"{source!r} cannot be read: {error.msg}.") from None
    steps: list[PathStep] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            steps.append(PathStep(attribute=node.attr))
            node = node.value
        elif isinstance(node, ast.Subscript):
            steps.append(_item(source, node.slice))
            node = node.value
        else:
            raise UsageError(f"{source!r} is computed: what can be watched is a variable, an attribute or an item.")
    return PlaceExpression(source.strip(), node.id, tuple(reversed(steps)))


def _item(source: str, node: ast.expr) -> PathStep:
    try:
        key = ast.literal_eval(node)
    except ValueError:
        key = None
    if isinstance(key, int):
        return PathStep(index=int(key))
    if isinstance(key, str):
        return PathStep(key=key)
    raise UsageError(f"{source!r}: an item is watched by a number or a text that stands there itself.")


def names_read(line: str) -> tuple[str, ...]:
    """Return the variables that a line of source reads, in order; none if it cannot be parsed by itself."""
    text = line.strip()
    for attempt in (text, text + " pass", f"{text}\n    pass", text.removeprefix("el")):
        try:
            tree = ast.parse(attempt)
            break
        except SyntaxError:
            continue
    else:
        return ()
    found = dict.fromkeys(
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )
    return tuple(found)
