"""Cells and columns of pandas' data frames and series: what to watch, and the changes of one along the run.

Most operations on a data frame move its values to another block, array or data frame. So a change of what is watched is
only a candidate. The cell is read again by its label, before the program's own line and after it: only a difference
counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from replaydbg.classes import dataclass
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.source.source_files import is_library
from replaydbg.engine.cell_queries import CellContent, CellStep, ReadCell
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.protocol import STEP, RunOrder, Watch, Watches
from replaydbg.engine.reports import Frame, Where
from replaydbg.errors import AskFailed

ABSENT = CellContent("", 0, (), "")


@dataclass(frozen=True, slots=True)
class CellPlace:
    """A cell or column: the place of a data frame, and the steps behind it."""

    source: str
    watch: Watch
    """The path to the data frame."""
    steps: tuple[CellStep, ...]
    is_shared: bool = False
    """Whether `watch` is on a variable that functions share."""


@dataclass(frozen=True, slots=True)
class CellState:
    """A cell at a moment."""

    content: CellContent
    owner: tuple[int, int]
    """The addresses of the data frame and of its type; zeros: there is none."""

    def is_equal(self, other: CellState) -> bool:
        """Whether it has the same value."""
        one, two = self.content, other.content
        return (one.text, one.digest) == (two.text, two.digest)


NOWHERE = CellState(ABSENT, (0, 0))


def read(view: ReplayView, worker: EngineProcess, place: CellPlace, root: Watch) -> CellState:
    """Return the cell at the position of `worker`; `root` leads to the data frame."""
    located = worker.locate(root)
    if not located[0]:
        return NOWHERE
    try:
        return CellState(worker.ask(ReadCell(located, place.steps), idle=view.work.idle), located)
    except AskFailed:
        return CellState(ABSENT, located)


def watches_of(root: Watch, state: CellState) -> tuple[Watch, ...]:
    """Return what to watch: the cell does not change unless one of them does."""
    parts = state.content.parts or ((),)
    return tuple(replace(root, steps=root.steps + part) for part in parts)


def own_frame(stack: Sequence[Frame]) -> Frame:
    """Return the innermost frame of the program's own code; the innermost one if there is none."""
    return next((each for each in stack if not is_library(each.file) and each.last), stack[0])


@dataclass(frozen=True, slots=True)
class CellChange:
    """A change of a cell, seen before a line of the program's own."""

    written: int
    """The count of the line after which what is watched had changed first."""
    state: CellState


def cell_changes(
    view: ReplayView, place: CellPlace, worker: EngineProcess, last: int, most: int = 0
) -> Iterator[CellChange]:
    """Let `worker` run to the line `last`, and yield the changes; it stands at each meanwhile.

    A change by library code that goes on at `last` is seen at the program's next own line, unless that comes after the
    line `most` (default: `last`). From a line of library code it starts with the next own line.
    """
    most = max(last, most)
    if not _goes_to_own_line(view, worker, worker.look(), most):
        return
    state = read(view, worker, place, place.watch)
    while worker.count < last:
        watches = tuple(replace(each, stops=True) for each in watches_of(place.watch, state))
        where = worker.run(RunOrder(until=last, watch=Watches(watches)), idle=view.travel.idle)
        if not isinstance(where, Where):
            return
        written = min((each.first_written for each in where.all_changes if each.count), default=0)
        # At the end, the line may have changed it later: who begins there starts behind the line.
        if not (written or _is_in_library(where)) or not _goes_to_own_line(view, worker, where, most):
            return
        view.travel.idle()
        before, state = state, read(view, worker, place, place.watch)
        if not state.is_equal(before):
            yield CellChange(written or last, state)


def _goes_to_own_line(view: ReplayView, worker: EngineProcess, where: Where, most: int) -> bool:
    """Let `worker`, which is at `where`, run on until it is about to run a line of the program's own.

    Returns whether there is one before the line `most`.
    """
    if not _is_in_library(where):
        return True
    arrived = worker.run(RunOrder(rule=STEP, lane=where.lane, own=(), until=most), idle=view.travel.idle)
    return isinstance(arrived, Where) and not _is_in_library(arrived)


def _is_in_library(where: Where) -> bool:
    return where.top is None or is_library(where.top.file)
