"""Passages of lines that may store to a place, found by one run over a stretch of the program.

The stores are evaluated in the process that passes the lines, which takes microseconds per passage. They only
select: each selected passage is then examined in a copy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass

from replaydbg.debugger.bisection.verdict_answers import is_disturbed
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.source.store_targets import StoreTarget
from replaydbg.debugger.stops.guarded_expressions import guarded
from replaydbg.engine.protocol import MOST_BREAKS, Break, RunOrder
from replaydbg.engine.queries import FindStores
from replaydbg.engine.reports import EndReport, EvaluatedPassage
from replaydbg.errors import EngineLost

AT_ONCE = 2_000
"""Passages after which a process reports what it has found."""

LONGEST = 10.0
"""Maximum seconds from one report of a process to the next; after that it may be stuck in an expression."""

MOST_REFUSED = 200
"""Maximum number of refused passages in a stretch; each is examined in a copy."""

MOST_FOUND = 20_000
"""Maximum number of passages in a stretch that may store. Of more, the latest one is probably the answer."""


@dataclass(frozen=True, slots=True)
class StoredPlace:
    """A place in an object, and the lines that may store to it."""

    object: tuple[int, int]
    """The addresses of the object and of its type."""
    key: str | int
    """The attribute, or the key of the item."""
    lines: tuple[tuple[str, int, tuple[StoreTarget, ...]], ...]
    """File, number and stores of each line."""


@dataclass(frozen=True, slots=True)
class SelectedPassage:
    """A line that was begun and may store to the place."""

    count: int
    file: str
    line: int


class _Unknown(Exception):
    """The process ended, hung, refused too much, or took another path than the recorded one."""


class StorePassages:
    """The passages that may store to one of several places. Each part of the run is run once for all of them."""

    def __init__(self, view: ReplayView, places: Sequence[StoredPlace], bounds: Sequence[int] = ()) -> None:
        """`bounds`: line counts between which parts are run as a whole; empty: only what is requested is run."""
        self._view = view
        self._bounds = sorted(bounds)
        self._breaks, self._query = _order(places)
        self._known: dict[tuple[int, int], dict[int, list[SelectedPassage]] | None] = {}

    def between(self, place: int, first: int, last: int) -> list[SelectedPassage] | None:
        """Return the passages after the line `first`, up to `last`, in order; None: this search cannot find them.

        `place` is the number of the place. Raises Cancelled.
        """
        if self._query is None:
            return None
        found: list[SelectedPassage] = []
        for part in self._parts(first, last):
            if part not in self._known:
                self._known[part] = self._run(self._query, *part)
            known = self._known[part]
            if known is None:
                return None
            found += [each for each in known.get(place, ()) if first < each.count <= last]
        return found

    def _parts(self, first: int, last: int) -> list[tuple[int, int]]:
        if not self._bounds or first < self._bounds[0] or last > self._bounds[-1]:
            return [(first, last)]
        pairs = zip(self._bounds, self._bounds[1:], strict=False)
        return [(begin, end) for begin, end in pairs if begin < last and end > first]

    def _run(self, query: FindStores, first: int, last: int) -> dict[int, list[SelectedPassage]] | None:
        found: dict[int, list[SelectedPassage]] = {}
        order = RunOrder(until=last, breaks=self._breaks, passages=query, most_passages=AT_ONCE)
        refused = total = 0
        try:
            with closing(self._view.travel.at(first)) as worker:
                while worker.count < last:
                    where = worker.run(order, idle=self._in_time())
                    if isinstance(where, EndReport):
                        return None
                    total += len(where.evaluated)
                    refused += sum(each.answer is None for each in where.evaluated)
                    if refused > MOST_REFUSED or total > MOST_FOUND:
                        return None
                    for each in where.evaluated:
                        for place in self._places(query, each):
                            at = self._breaks[each.number - 1]
                            found.setdefault(place, []).append(SelectedPassage(each.count, at.file, at.line))
                return None if is_disturbed(self._view, worker.look()) else found
        except (EngineLost, _Unknown):
            return None

    def _places(self, query: FindStores, passage: EvaluatedPassage) -> Iterable[int]:
        """Return the numbers of the places to which a passage may store."""
        if not 0 < passage.number <= len(query.asked):
            raise _Unknown
        asked = {number for number, _, _ in query.asked[passage.number - 1]}
        if passage.answer is None:
            return asked
        numbers = {int(each) if each.isdecimal() else -1 for each in passage.answer[1].split(",")}
        if not numbers <= asked:
            raise _Unknown
        return numbers

    def _in_time(self) -> Callable[[], None]:
        until = time.monotonic() + LONGEST

        def idle() -> None:
            self._view.travel.idle()
            if time.monotonic() > until:
                raise _Unknown

        return idle


def _order(places: Sequence[StoredPlace]) -> tuple[tuple[Break, ...], FindStores | None]:
    """Return the breaks and the query for all places; no query: there are too many lines."""
    by_line: dict[tuple[str, int], dict[tuple[int, str, str | None], None]] = {}
    for number, place in enumerate(places):
        for file, line, stores in place.lines:
            asked = by_line.setdefault((file, line), {})
            for store in stores:
                asked[(number, _guarded(store.container), None if store.key is None else _guarded(store.key))] = None
    if not by_line or len(by_line) > MOST_BREAKS:
        return (), None
    query = FindStores(tuple((each.object, each.key) for each in places), tuple(map(tuple, by_line.values())))
    return tuple(Break(file, line, stop_at=0) for file, line in by_line), query


def _guarded(source: str | None) -> str:
    """Return an expression with guards; empty: its value is unknown."""
    return (guarded(source) or "") if source else ""
