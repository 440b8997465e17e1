"""Lines that may store to a place, read off the source, and their passages in a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from replaydbg.classes import dataclass
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.source.place_expressions import PlaceExpression, is_plain
from replaydbg.debugger.source.source_files import is_library
from replaydbg.debugger.source.store_targets import StoreTarget
from replaydbg.engine.protocol import Break, PathStep, Watch
from replaydbg.engine.reports import Frame, Where


@dataclass(frozen=True, slots=True)
class StoringLine:
    """A line that may store to the place."""

    file: str
    number: int
    function: str
    stores: tuple[StoreTarget, ...]

    @property
    def is_never_sure(self) -> bool:
        """Whether no passage of the line can be known to have stored to the place."""
        return not any(each.is_sure and each.container != "" and each.key != "" for each in self.stores)

    def __str__(self) -> str:
        return f"{PurePath(self.file).name}:{self.number} {self.function}"


@dataclass(frozen=True, slots=True)
class BegunLine:
    """A line that was begun and may have stored to the place."""

    count: int
    line: StoringLine
    top: Frame
    lane: int
    is_sure: bool
    store: StoreTarget


@dataclass(frozen=True, slots=True)
class PassedStretch:
    """A part of the run, and the passages in it."""

    end: int
    """Its last line."""
    latest: int
    """The last passage; 0: there is none."""
    number: int


def storing_lines(view: ReplayView, place: PlaceExpression, watch: Watch, *, is_local: bool) -> Iterator[StoringLine]:
    """Yield the lines that may store to a place; `is_local`: it is a variable of one function alone."""
    last = place.steps[-1] if place.steps else None
    for hits in view.index.hits:
        if is_library(hits.file) or (is_local and hits.first_line != watch.first_line):
            continue
        found = [each for each in view.sources.stores(hits.file) if _may_be_meant(each, place.name, watch, last)]
        for number in hits.lines:
            stores = tuple(each for each in found if each.first <= number <= each.last)
            if stores:
                yield StoringLine(hits.file, number, hits.function, stores)


def _may_be_meant(store: StoreTarget, name: str, watch: Watch, last: PathStep | None) -> bool:
    if last is None:
        is_variable = store.container is None or bool(watch.module)
        return is_variable and store.name == name
    if last.attribute is not None:
        return store.container is not None and store.name == last.attribute
    if store.key is None:
        return False
    if last.entry is not None:
        return store.constant is None or not is_plain(store.constant)
    if last.cell is not None:  # a row may be assigned, too
        return not isinstance(store.constant, str)
    if last.key is not None:
        return store.constant is None or store.constant == last.key
    is_other = isinstance(store.constant, int) and store.constant >= 0 <= (last.index or 0)
    return not isinstance(store.constant, str) and not (is_other and store.constant != last.index)


def breaks_of(lines: tuple[StoringLine, ...], stop_at: int) -> tuple[Break, ...]:
    """Return the breaks of lines; `stop_at`: see Break."""
    return tuple(Break(file=each.file, line=each.number, stop_at=stop_at) for each in lines)


def stretch_of(where: Where) -> PassedStretch:
    """Return what a run over a stretch has counted."""
    latest = max((each.last for each in where.passages), default=0)
    return PassedStretch(where.count, latest, sum(each.count for each in where.passages))


def is_with(line: str) -> bool:
    """Whether a line of source begins a `with` statement."""
    return line.startswith(("with ", "with(", "async with"))
