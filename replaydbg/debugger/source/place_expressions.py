"""Expressions that name a place: a variable, and the attributes and items that lead from it to a value."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Protocol

from replaydbg.classes import dataclass
from replaydbg.engine.protocol import PathStep
from replaydbg.engine.queries import Step
from replaydbg.engine.query_results import DictEntry
from replaydbg.errors import ForgedMessage, UsageError

_ACCESSORS = ("loc", "iloc", "at", "iat")


@dataclass(frozen=True, slots=True)
class PlaceExpression:
    """A parsed place."""

    source: str
    name: str
    """The variable that it begins with."""
    steps: tuple[PathStep, ...]
    module: str = ""
    """The module that was named before the variable; empty: a frame sees it."""

    @property
    def variable(self) -> str:
        """The variable as an expression."""
        return f"{self.module}.{self.name}" if self.module else self.name

    def in_module(self, step: int) -> PlaceExpression:
        """Return the same with a module as what comes before a step, counted from 0, and the variable as that step.

        Raises ForgedMessage if such steps name none: which one it is has come from the program.
        """
        names = [each.attribute for each in self.steps[: step + 1]]
        if step >= len(self.steps) or None in names:
            raise ForgedMessage("it named a variable of a module by a step that is none")
        *inner, name = [each for each in names if each is not None]
        return PlaceExpression(self.source, name, self.steps[step + 1 :], ".".join([self.name, *inner]))

    @property
    def has_items_of_items(self) -> bool:
        """Whether an item is followed by an item of it."""
        return any(one.indices and other.indices for one, other in pairwise(self.steps))

    def joined(self, rows: Sequence[int]) -> PlaceExpression:
        """Return the same with the items of rows of arrays as one step; `rows`: the steps that lead to rows."""
        steps: list[PathStep] = []
        for number, step in enumerate(self.steps):
            if steps and number - 1 in rows and step.indices:
                step = PathStep(cell=steps.pop().indices + step.indices)
            steps.append(step)
        return replace(self, steps=tuple(steps))

    @property
    def keys(self) -> tuple[Step, ...]:
        """The steps as the probe reads them."""
        return keys_of(self.steps)


def keys_of(steps: tuple[PathStep, ...]) -> tuple[Step, ...]:
    """Return steps as the probe reads them."""
    return tuple(map(_key_of, steps))


def _key_of(step: PathStep) -> Step:
    if step.attribute is not None:
        return ("attribute", step.attribute)
    assert step.item is not None, "a field is no step of an expression"
    return ("item", step.item)


class Indices(Protocol):
    """What the indices of an expression mean at a position."""

    def text_of(self, index: str) -> str:
        """Return the value of an index as text, or how it failed."""

    def entry_of(self, container: str, index: str) -> DictEntry | None:
        """Return the key that a dictionary holds for an index; None: `container` is not a dictionary."""


def parse_place(source: str, indices: Indices | None = None) -> PlaceExpression:
    """Return what `source`, such as `app.cache['x'][3].price`, names. Raises UsageError for any other expression.

    `indices`: without it, an index must be a number, a string, or numbers.
    """
    text = source.strip()
    try:
        node: ast.expr = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise UsageError(f"{source!r} is not valid Python: {error.msg}.") from None
    whole = node
    steps: list[PathStep] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            steps.append(PathStep(attribute=node.attr))
            node = node.value
        elif isinstance(node, ast.Subscript):
            if any(isinstance(each, ast.Slice) for each in ast.walk(node.slice)):
                raise UsageError(f"{source!r} is computed: a slice is not an item.")
            step, literal = _item_step(source, node, indices)
            if literal is not None:
                node.slice = literal
                text = ""
            steps.append(step)
            node = node.value
        else:
            raise UsageError(f"{source!r} is computed: only a variable, an attribute or an item can be tracked.")
    return PlaceExpression(text or ast.unparse(whole), node.id, tuple(reversed(steps)))


def _item_step(source: str, node: ast.Subscript, indices: Indices | None) -> tuple[PathStep, ast.expr | None]:
    """Return the step to an item; if its index is computed, and is a plain one now, that as well."""
    index = ast.unparse(node.slice)
    key = _literal(node.slice)
    if key is not None and is_plain(key):
        return _plain_step(key), None
    text = ""
    if key is None and indices is not None:
        text = indices.text_of(index)
        if (computed := _literal_in(text)) is not None and is_plain(computed):
            return _plain_step(computed), ast.parse(repr(computed), mode="eval").body
    # The key of a dictionary can be anything; what numbers mean depends on what has the item.
    entry = indices.entry_of(ast.unparse(node.value), index) if indices is not None else None
    if entry is not None:
        return PathStep(entry=entry), None
    numbers = key if key is not None else _literal_in(text)
    if numbers is None:
        allowed = "a number, a string, or numbers" if indices is None else "a number or numbers, except in a dictionary"
        value_note = "" if not text or text == index else f" ({index} is {text})"
        raise UsageError(f"{source!r} cannot be tracked: the key of an item must be {allowed}{value_note}.")
    return _plain_step(numbers), None if key is not None else ast.parse(repr(numbers), mode="eval").body


def _plain_step(key: str | int | tuple[int, ...]) -> PathStep:
    if isinstance(key, str):
        return PathStep(key=key)
    return PathStep(cell=key) if isinstance(key, tuple) else PathStep(index=int(key))


def is_plain(key: object) -> bool:
    """Whether the core compares such a key by its value."""
    return type(key) in (str, int)


def _literal(node: ast.expr) -> str | int | tuple[int, ...] | None:
    try:
        key = ast.literal_eval(node)
    except ValueError:
        return None
    is_cell = isinstance(key, tuple) and key and all(isinstance(each, int) for each in key)
    return key if is_cell or isinstance(key, (int, str)) else None


def _literal_in(text: str) -> str | int | tuple[int, ...] | None:
    try:
        return _literal(ast.parse(text, mode="eval").body)
    except SyntaxError:
        return None


def names_read(line: str, text: str = "") -> tuple[str, ...]:
    """Return the variables that a line of source reads, in order; none if it cannot be parsed by itself.

    Without those that are only modules, functions and classes by the `text` of its file.
    """
    nodes = (node for part in _parsed(line) for node in ast.walk(part))
    names = dict.fromkeys(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    return tuple(each for each in names if each not in _definitions(text))


@lru_cache(8)
def _definitions(text: str) -> frozenset[str]:
    """Return the names that a file binds by `import`, `def` and `class`, and in no other way."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    # What `from a import b` binds may be a value.
    imports = {
        alias.asname or alias.name.partition(".")[0]
        for each in nodes
        if isinstance(each, ast.Import)
        for alias in each.names
    }
    made = {each.name for each in nodes if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
    bound = {each.id for each in nodes if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)}
    bound |= {each.arg for each in nodes if isinstance(each, ast.arg)}
    return frozenset((imports | made) - bound)


def _parsed(line: str) -> list[ast.stmt]:
    text = line.strip()
    for attempt in (text, text + " pass", f"{text}\n    pass", text.removeprefix("el")):
        try:
            return ast.parse(attempt).body
        except SyntaxError:
            continue
    return []


def places_read(line: str) -> tuple[str, ...]:
    """Return the attributes and items that a line reads, such as `app.cache[name].price`; none as above.

    Of one within another it is the whole.
    """
    found: dict[str, None] = {}
    for node in _parsed(line):
        _gather(node, found)
    return tuple(found)


def _gather(node: ast.AST, found: dict[str, None]) -> None:
    if isinstance(node, ast.Attribute) and node.attr in _ACCESSORS:
        node = node.value  # of a data frame; without a key it is no place
    if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load) and is_place(node):
        found[ast.unparse(node)] = None
        return
    for child in ast.iter_child_nodes(node):
        # A method is none; the object that has it may be.
        if isinstance(node, ast.Call) and child is node.func and isinstance(child, ast.Attribute):
            child = child.value
        _gather(child, found)


class _AnyIndex:
    def text_of(self, index: str) -> str:
        return "0"

    def entry_of(self, container: str, index: str) -> DictEntry | None:
        return None


def is_place(node: ast.expr) -> bool:
    """Whether an expression names a variable, an attribute or an item; nothing is computed but an index."""
    try:
        parse_place(ast.unparse(node), _AnyIndex())
    except UsageError:
        return False  # it is computed: what it is computed of may be one
    return True
