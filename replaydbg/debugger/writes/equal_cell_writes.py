"""The last write of a cell of a data frame by a statement of the program that wrote an equal value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace

from replaydbg.debugger.data_frames.cell_changes import CellPlace
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import LastWrite
from replaydbg.debugger.source.source_files import is_library
from replaydbg.debugger.source.store_targets import StoreTarget
from replaydbg.debugger.writes.store_passages import SelectedPassage, StoredPlace, StorePassages
from replaydbg.debugger.writes.store_search import EqualWrite, StoreSearch
from replaydbg.debugger.writes.storing_lines import BegunLine, StoringLine
from replaydbg.engine.cell_queries import MatchCellStores
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.protocol import MOST_BREAKS
from replaydbg.engine.reports import Frame
from replaydbg.errors import AskFailed

ACCESSORS = (".loc", ".iloc", ".at", ".iat")


class EqualCellWrites(StoreSearch):
    """The statements that may have written to a cell or column, and the search for the last one that did."""

    def __init__(self, view: ReplayView, place: CellPlace, owners: Mapping[tuple[int, int], tuple[int, int]]) -> None:
        """`owners`: the data frames that had the cell since it changed, and the lines between which they had it."""
        super().__init__(view, _lines(view, place), is_binding=False)
        self._place, self._owners = place, owners

    def since(self, seen: int, change: LastWrite) -> EqualWrite:
        """Return the last write after the value was seen at the line `seen` to have changed by `change`."""
        self._seen, self._change = seen, change
        if not self._lines:
            return EqualWrite(None, "")
        if len(self._lines) > MOST_BREAKS:
            return EqualWrite(None, f"more than {MOST_BREAKS} lines may have written an equal value since")
        any(self._takes(each) for each in self._passages(seen - 1, self._view.here.count - 1))
        self._is_whole |= self._best is not None
        return EqualWrite(self._write_of(), self._note())

    def _passages(self, first: int, last: int) -> Iterator[BegunLine]:
        """Yield the passages that store to one of the data frames, the latest first."""
        lines = _bases(self._lines.values())
        found: dict[int, SelectedPassage] = {}
        for owner, (since, until) in self._owners.items():
            # Only while it lives: who asks for it before it is made changes where it will lie.
            begin, end = max(first, since - 1), min(last, until)
            with closing(StorePassages(self._view, [StoredPlace(owner, "", lines)])) as passages:
                selected = passages.between(0, begin, end) if begin < end else []
            if selected is None:
                self._is_whole = False
            found |= {each.count: each for each in selected or ()}
        yield from self._each_at([found[each] for each in sorted(found)])

    def _matches(self, worker: EngineProcess, top: Frame, stores: tuple[StoreTarget, ...]) -> list[bool | None]:
        located = worker.locate(self._place.watch)
        object_ = located if located in self._owners else next(iter(self._owners))
        targets = tuple((each.container or "", each.key) for each in stores)
        try:
            query = MatchCellStores(object=object_, steps=self._place.steps, targets=targets)
            return worker.ask(query, idle=self._view.travel.idle)
        except AskFailed:
            return [None] * len(stores)


def _lines(view: ReplayView, place: CellPlace) -> dict[tuple[str, int], StoringLine]:
    """Return the lines of the program's own with a statement that may store to the cell, by the keys in the source."""
    found = {}
    labels = _labels(place)
    for hits in view.index.hits:
        if is_library(hits.file):
            continue
        found_here = (each for each in view.sources.stores(hits.file) if _may_be_meant(each, labels))
        # A copy computes the key, as it does the key of a place that is asked for: masks are usual.
        stores = [replace(each, key=each.computed_key) for each in found_here]
        for number in hits.lines:
            here = tuple(each for each in stores if each.first <= number <= each.last)
            if here:
                found[hits.file, number] = StoringLine(hits.file, number, hits.function, here)
    return found


def _labels(place: CellPlace) -> set[object]:
    """Return the labels in the expression; empty: it names a position, whose labels are not known."""
    if any(step in (("attribute", "iloc"), ("attribute", "iat")) for step in place.steps):
        return set()
    keys = [key for _, key in place.steps]
    return {*keys, *(label for key in keys if isinstance(key, tuple) for label in key)}


def _may_be_meant(store: StoreTarget, labels: set[object]) -> bool:
    if store.key is None or not store.container:
        return False
    is_any = store.container.endswith(ACCESSORS) or not isinstance(store.constant, (str, int))
    return is_any or not labels or store.constant in labels


def _bases(lines: Iterable[StoringLine]) -> tuple[tuple[str, int, tuple[StoreTarget, ...]], ...]:
    """Return file, number and stores of lines, each store as one to any item of the object that has the accessor."""
    return tuple((each.file, each.number, tuple(map(_base, each.stores))) for each in lines)


def _base(store: StoreTarget) -> StoreTarget:
    container = store.container or ""
    accessor = next((each for each in ACCESSORS if container.endswith(each)), "")
    return replace(store, container=container.removesuffix(accessor), key=None)
