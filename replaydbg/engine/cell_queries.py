"""Queries about cells of pandas' data frames and series, which the probe answers inside a copy of the program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from replaydbg.engine.protocol import PathStep
from replaydbg.engine.queries import FrameQuery, Query
from replaydbg.errors import ForgedMessage
from replaydbg.log.coding.shapes import COUNT, ListOf, one_of

CellStep = tuple[str, Any]
"""A step behind a data frame: `attribute` and its name, or `item` and a label or position, which is any plain value."""

MOST_PARTS, MOST_STEPS = 16, 10
"""How many parts a cell may have, and how many steps may lead to one."""


@dataclass(frozen=True, slots=True)
class CellContent:
    """A cell or column at a moment."""

    text: str
    """Its value; empty: it does not exist."""
    digest: int
    """The same for equal values, 0 if it does not exist."""
    parts: tuple[tuple[PathStep, ...], ...]
    """The paths from the data frame to what may change with it."""
    obstacle: str
    """Why it cannot be tracked; empty: it can."""


@dataclass(frozen=True, slots=True)
class FindDataFrame(FrameQuery[int | None]):
    """How many of `steps` from `source` lead to a data frame or series of pandas; None: they lead to none."""

    tag = "data_frame"
    shape = one_of(None, COUNT)
    source: str = ""
    steps: tuple[CellStep, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadCell(Query[CellContent]):
    """A cell or column of a data frame or series of pandas, and the parts that change with it."""

    tag = "cell"
    shape = (str, COUNT, ListOf(ListOf((one_of("attribute", "item", "cell", "field"), str, ListOf(COUNT)))), str)
    object: tuple[int, int]
    """The addresses of the data frame and of its type."""
    steps: tuple[CellStep, ...]

    def _read(self, answer: Any) -> CellContent:
        text, digest, parts, obstacle = answer
        if len(parts) > MOST_PARTS or any(len(part) > MOST_STEPS for part in parts):
            raise ForgedMessage("it sent too many parts of a cell")
        return CellContent(text, digest, tuple(tuple(_path_step(*step) for step in part) for part in parts), obstacle)


def _path_step(kind: str, name: str, numbers: Sequence[int]) -> PathStep:
    if kind == "attribute":
        return PathStep(attribute=name)
    if kind == "cell" and 0 < len(numbers) <= MOST_STEPS:
        return PathStep(cell=tuple(numbers))
    if kind == "cell" or len(numbers) != 1:
        raise ForgedMessage("it sent a step without its number")
    return PathStep(field=(name, numbers[0])) if kind == "field" else PathStep(index=numbers[0])


@dataclass(frozen=True, slots=True)
class MatchCellStores(FrameQuery[list[bool | None]]):
    """For each of `targets`: whether a store to it writes to a cell or column; None: unknown."""

    tag = "cell_stores"
    shape = ListOf(one_of(None, bool))
    object: tuple[int, int] = (0, 0)
    """The addresses of the data frame and of its type."""
    steps: tuple[CellStep, ...] = ()
    targets: tuple[tuple[str, str | None], ...] = ()
    """Expressions of a container, such as `table.loc`, and of a key; no key: it would have to be computed."""


CELL_QUERIES: dict[str, type[Query[Any]]] = {each.tag: each for each in (FindDataFrame, ReadCell, MatchCellStores)}
"""The queries, by their tags."""
