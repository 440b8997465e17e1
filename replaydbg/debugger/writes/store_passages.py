"""Passages of lines that may store to a place, found by one run over a stretch of the program.

The stores are evaluated in the process that passes the lines, which takes microseconds per passage. They only
select: each selected passage is then examined in a copy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing

from replaydbg.classes import dataclass
from replaydbg.debugger.bisection.verdict_answers import is_disturbed
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.source.store_targets import StoreTarget
from replaydbg.debugger.stops.guarded_expressions import guarded
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.protocol import MOST_BREAKS, Break, RunOrder, Watch
from replaydbg.engine.queries import FindStores, ItemKey
from replaydbg.engine.reports import EndReport, EvaluatedPassage
from replaydbg.errors import EngineLost
from replaydbg.launch.processors import processors

AT_ONCE = 2_000
"""Passages after which a process reports what it has found."""

LONGEST = 10.0
"""Maximum seconds from one report of a process to the next; after that it may be stuck in an expression."""

MOST_REFUSED = 200
"""Maximum number of refused passages in a stretch; each is examined in a copy."""

WIDTH = processors()
"""Replays that run at a time."""

MOST_FOUND = 20_000
"""Maximum number of passages in a stretch that may store. Of more, the latest one is probably the answer."""


@dataclass(frozen=True, slots=True)
class StoredPlace:
    """A place in an object, and the lines that may store to it."""

    object: tuple[int, int]
    """The addresses of the object and of its type."""
    key: ItemKey
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
    """The passages that may store to one of several places. Close it.

    Each part of the run is run once for all of them, and one part more at a time if another processor is free.
    """

    def __init__(self, view: ReplayView, places: Sequence[StoredPlace], bounds: Sequence[int] = ()) -> None:
        """`bounds`: line counts between which parts are run as a whole; empty: only what is requested is run."""
        self._view = view
        self._bounds = sorted(bounds)
        self._breaks, self._query = _order(places)
        self._known: dict[tuple[int, int], dict[int, list[SelectedPassage]]] = {}
        self._expected: list[tuple[int, int]] = []
        self._running: dict[tuple[int, int], _SelectingRun] = {}

    def between(self, place: int, first: int, last: int) -> list[SelectedPassage] | None:
        """Return the passages after the line `first`, up to `last`, in order; None: this search cannot find them.

        `place` is the number of the place. Raises Cancelled.
        """
        if self._query is None:
            return None
        found: list[SelectedPassage] = []
        for part in self._parts(first, last):
            selected = self._found_in(self._query, part).get(place)
            if selected is None:
                return None
            found += [each for each in selected if first < each.count <= last]
        return found

    def _parts(self, first: int, last: int) -> list[tuple[int, int]]:
        if not self._bounds or first < self._bounds[0] or last > self._bounds[-1]:
            return [(first, last)]
        pairs = zip(self._bounds, self._bounds[1:], strict=False)
        return [(begin, end) for begin, end in pairs if begin < last and end > first]

    def expect(self, stretches: Sequence[tuple[int, int]]) -> None:
        """Name what will be asked for next, in that order: while one part is waited for, the next one runs as well."""
        parts = (part for first, last in stretches for part in reversed(self._parts(first, last)))
        self._expected = list(dict.fromkeys(parts))

    def close(self) -> None:
        """Stop what runs ahead; again is harmless."""
        for each in self._running.values():
            each.close()
        self._running.clear()

    def _found_in(self, query: FindStores, part: tuple[int, int]) -> dict[int, list[SelectedPassage]]:
        if part not in self._known:
            self._begin(query, part)
            for each in self._expected[self._expected.index(part) + 1 :] if part in self._expected else ():
                if len(self._running) >= WIDTH:
                    break
                if each not in self._known:
                    self._begin(query, each)
            with closing(self._running.pop(part)) as run:
                self._known[part] = run.finish()
        return self._known[part]

    def _begin(self, query: FindStores, part: tuple[int, int]) -> None:
        if part not in self._running:
            self._running[part] = _SelectingRun(self._view, self._breaks, query, *part)


class _SelectingRun:
    """A process that runs over a part of the run and selects passages. Close it."""

    def __init__(self, view: ReplayView, breaks: tuple[Break, ...], query: FindStores, first: int, last: int) -> None:
        self._view, self._breaks, self._query, self._last = view, breaks, query, last
        self._order = RunOrder(until=last, breaks=breaks, passages=query, most_passages=AT_ONCE)
        self._worker: EngineProcess | None = None
        self._begins: set[int] = set()
        try:
            self._worker = view.travel.at(first)
            self._begins = self._places_in(self._worker)
            self._worker.start(self._order)
        except EngineLost:
            self.close()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._worker is not None:
            self._worker.kill()
            self._worker = None

    def finish(self) -> dict[int, list[SelectedPassage]]:
        """Wait for it; return the passages by the number of the place, without places that it cannot find them for."""
        found: dict[int, list[SelectedPassage]] = {each: [] for each in self._begins}
        refused = total = 0
        worker = self._worker
        try:
            while worker is not None:
                where = worker.await_stop(idle=self._in_time())
                if isinstance(where, EndReport):
                    break
                total += len(where.evaluated)
                refused += sum(each.answer is None for each in where.evaluated)
                if refused > MOST_REFUSED or total > MOST_FOUND:
                    break
                for each in where.evaluated:
                    at = self._breaks[each.number - 1]
                    for place in self._begins.intersection(self._places(self._query, each)):
                        found[place].append(SelectedPassage(each.count, at.file, at.line))
                if worker.count >= self._last:
                    if is_disturbed(self._view, worker.look()):
                        break
                    ends = self._places_in(worker)
                    return {place: passages for place, passages in found.items() if place in ends}
                worker.start(self._order)
        except (EngineLost, _Unknown):
            return {}  # every passage is looked at in a copy then
        return {}

    def _places_in(self, worker: EngineProcess) -> set[int]:
        """Return the numbers of the places whose object is at its address.

        An object made on the way has another one: the functions that select lie in the program's memory.
        """
        objects = [object for object, _ in self._query.places]
        found = worker.locate_each([Watch("", object=each) for each in objects])
        return {number for number, object in enumerate(objects) if found[number].object == object}

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
