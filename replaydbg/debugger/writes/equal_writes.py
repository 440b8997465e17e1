"""The last write of a value if it wrote an equal one, which change tracking does not see.

The lines that may have done it are read off the source; those that ran are gone through, the latest first, and asked
which object they were about to store into.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice

from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import LastWrite
from replaydbg.debugger.source.place_expressions import PlaceExpression
from replaydbg.debugger.source.store_targets import StoreTarget
from replaydbg.debugger.writes.store_passages import SelectedPassage, StoredPlace, StorePassages
from replaydbg.debugger.writes.store_search import EqualWrite, StoreSearch
from replaydbg.debugger.writes.storing_lines import (
    BegunLine,
    PassedStretch,
    StoringLine,
    breaks_of,
    storing_lines,
    stretch_of,
)
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.protocol import MOST_BREAKS, Break, RunOrder, Watch
from replaydbg.engine.queries import FindWaitingStores, ItemKey, MatchStores, StorePlace
from replaydbg.engine.reports import EndReport, Frame, Where
from replaydbg.errors import AskFailed

MOST_AT_ONCE = 3
"""Up to so many passages are all examined; of more, those that may store to the place are selected first."""


class EqualWrites(StoreSearch):
    """The lines that may have written to a place, and the search for the last one that did."""

    def __init__(self, view: ReplayView, place: PlaceExpression, watch: Watch, *, only_certain: bool = False) -> None:
        """Find the lines. `watch` is the watch that shows changes of the value.

        `only_certain`: ignore lines that can never be known to have written the value; the note does not name them.
        """
        super().__init__(view, {}, is_binding=not place.steps)
        self._place = place
        self._watch = watch
        self._passed: list[PassedStretch] = []
        self._last = place.steps[-1] if place.steps else None
        self._owner = replace(watch, steps=place.steps[:-1])
        self._cell = self._shared_cell()
        is_local = self._last is None and not watch.module and not self._cell[0]
        lines = storing_lines(view, place, watch, is_local=is_local)
        self._lines = {(each.file, each.number): each for each in lines if not (only_certain and each.is_never_sure)}
        self._selection: tuple[StorePassages, int] | None = None
        stored = self.stored_place
        self._own_selection = StorePassages(view, [stored]) if stored is not None else None

    @property
    def stored_place(self) -> StoredPlace | None:
        """The place, if it is in an object that has the same address in all processes."""
        key = self._key
        if self._last is None or not self._watch.object[0] or key is None or not self._lines:
            return None
        lines = tuple((each.file, each.number, each.stores) for each in self._lines.values())
        return StoredPlace(self._watch.object, key, lines)

    def select_by(self, passages: StorePassages, number: int) -> None:
        """Use a search that several places share; `number` is the number of this place in it."""
        self._selection = passages, number

    @property
    def breaks(self) -> tuple[Break, ...]:
        """The breaks that count their passages during a scan."""
        return breaks_of(tuple(self._lines.values()), 0) if len(self._lines) <= MOST_BREAKS else ()

    def pass_over(self, where: Where) -> None:
        """Take what a run over a stretch has counted; the latest stretch comes first."""
        self._passed.append(stretch_of(where))

    def since(self, seen: int, change: LastWrite) -> EqualWrite:
        """Return the last write after the value was seen at the line `seen` to have changed by `change`.

        Looks at what ran since, and at what had begun before and was not done.
        """
        try:
            return self._since(seen, change)
        finally:
            if self._own_selection is not None:
                self._own_selection.close()

    def _since(self, seen: int, change: LastWrite) -> EqualWrite:
        self._seen, self._change = seen, change
        here = self._view.here.count
        if not self._lines:
            return EqualWrite(None, "")
        if len(self._lines) > MOST_BREAKS:
            return EqualWrite(None, f"more than {MOST_BREAKS} lines may have written an equal value since")
        with closing(self._passages_since()) as passages:
            any(self._takes(each) for each in passages)
        # If it ended at one, what it left out was before that.
        self._is_whole |= self._best is not None
        if here > self._seen:
            self._search_unfinished(self._best[1].count if self._best is not None else self._seen)
        return EqualWrite(self._write_of(), self._note())

    # ---- the lines ----

    def _shared_cell(self) -> tuple[int, int]:
        """Return the address of the cell of a variable that functions share; zeros: it is not shared."""
        watch = self._watch
        if self._last is not None or watch.module or watch.object[0]:
            return watch.object if self._last is None else (0, 0)
        cell = self._view.cursor.locate(replace(watch, is_cell=True))
        return cell if cell != self._view.cursor.locate(watch) else (0, 0)

    # ---- what ran since ----

    def _passages_since(self) -> Generator[BegunLine]:
        """Yield the passages after the change and before here, the latest first."""
        here = self._view.here.count
        lines = tuple(self._lines.values())
        firsts = [*(each.end for each in self._passed[1:]), self._seen - 1]
        stretches = [each for each in zip(self._passed, firsts, strict=True) if each[0].latest >= self._seen]
        if self._selection is not None:
            self._selection[0].expect([(first, each.end) for each, first in stretches if each is not self._passed[0]])
        elif self._own_selection is not None:
            ahead = [(max(first, self._seen), each.end) for each, first in stretches if each is not self._passed[0]]
            self._own_selection.expect(ahead)
        for stretch, first in stretches:
            # In the latest stretch one of its last passages is mostly the one; so it is looked at as below.
            selected = self._selected(first, stretch.end) if stretch is not self._passed[0] else None
            if selected is not None:
                yield from self._each_at(selected, stretch.latest)
            else:
                found = stretch
                if stretch is self._passed[-1] or stretch.latest >= here:
                    found = self._scanned(lines, first, min(stretch.end, here - 1))
                if found.number:
                    yield from self._between(lines, first, found.latest, found.number)
            if not self._is_whole:
                return

    def _scanned(self, lines: tuple[StoringLine, ...], first: int, last: int) -> PassedStretch:
        if first >= last:
            return PassedStretch(last, 0, 0)
        return stretch_of(self._view.travel.scan(first, last, RunOrder(breaks=breaks_of(lines, 0))))

    def _back(self, lines: tuple[StoringLine, ...], first: int, last: int) -> Iterator[BegunLine]:
        """Yield the passages after the line `first` and not after `last`, the latest first."""
        upper = last
        for begin in self._view.travel.timeline.earlier(last + 1):
            lower = max(begin, first, 1)
            found = self._scanned(lines, lower, upper)
            if found.number:
                yield from self._between(lines, lower, found.latest, found.number)
            if not self._is_whole:
                return
            upper = min(upper, lower)
            if lower <= max(first, 1):
                return

    def _between(self, lines: tuple[StoringLine, ...], lower: int, latest: int, number: int) -> Iterator[BegunLine]:
        # Mostly the latest passage is the one.
        with closing(self._view.travel.at(latest)) as worker:
            yield from reversed(self._passages_at(worker, worker.look()))
        selected = self._selected(lower, latest - 1) if number > MOST_AT_ONCE else None
        if selected is not None:
            yield from self._each_at(selected)
            return
        while number > self._left and lower < latest - 1:
            # The later half, until there are few enough: all scans together take as long as the first one.
            self._is_whole = False
            lower = (lower + latest) // 2
            number = self._scanned(lines, lower, latest - 1).number
        self._left -= number
        found: list[BegunLine] = []
        with closing(self._view.travel.at(lower)) as worker:
            order = RunOrder(until=latest - 1, breaks=breaks_of(lines, 1))
            while worker.count < latest - 1 and number > 1:
                where = worker.run(order, idle=self._view.travel.idle)
                if isinstance(where, EndReport) or where.why != "break":
                    break
                self._view.travel.idle()
                found += self._passages_at(worker, where)
        yield from reversed(found)

    def _selected(self, first: int, last: int) -> list[SelectedPassage] | None:
        """Return the passages after the line `first` and not after `last`; None: they cannot be found in this way."""
        if first < self._seen - 1:
            return None
        if self._selection is not None:
            passages, number = self._selection
            selected = passages.between(number, first, last)
            if selected is not None:
                return selected
        if self._own_selection is None:
            return None
        # The line before the change may make the object.
        begin = max(first, self._seen)
        selected = self._own_selection.between(0, begin, last)
        return selected if selected is None or begin == first else [*self._at_change(), *selected]

    def _at_change(self) -> list[SelectedPassage]:
        with closing(self._view.travel.at(self._seen)) as worker:
            stack = worker.look().stack
        is_storing = bool(stack) and (stack[0].file, stack[0].line) in self._lines
        return [SelectedPassage(self._seen, stack[0].file, stack[0].line)] if is_storing else []

    def _search_unfinished(self, at: int) -> None:
        """Look at lines that had begun before the line `at` and were not done: of other threads, callers and tasks."""
        begun: set[int] = set()
        with closing(self._view.travel.at(at)) as worker:
            where = worker.look()
            for lane in where.lanes:
                stack = worker.stack(lane.id)[1 if lane.id == where.lane else 0 :]
                begun |= {each.last for each in stack if (each.file, each.line) in self._lines}
            waiting = self._waiting(worker)
        changed = self._change.count if self._change is not None else 0
        for count in sorted(begun - {0, changed}):
            with closing(self._view.travel.at(count)) as worker:
                for each in self._passages_at(worker, worker.look()):
                    self._takes(each)
        if waiting:
            passages = self._back(tuple(dict.fromkeys(waiting)), 1, at - 1)
            found = (each for each in passages if self._takes(each) or each.count in self._running)
            self._is_whole |= len(list(islice(found, len(waiting)))) == len(waiting)

    def _waiting(self, worker: EngineProcess) -> list[StoringLine]:
        """The lines in which tasks wait that are on no stack."""
        lines = {
            place: [(each.container, each.key) for each in line.stores]
            for place, line in self._lines.items()
            if any(each.may_wait for each in line.stores)
        }
        if not lines:
            return []
        try:
            place = self._store_place(worker)
            query = FindWaitingStores(module=place.module, object=place.object, key=place.key, lines=lines)
            places = worker.ask(query, idle=self._view.travel.idle)
        except AskFailed:
            self._unsure |= {str(self._lines[each]): None for each in lines}
            return []
        return [self._lines[each] for each in places if each in self._lines]

    def _store_place(self, worker: EngineProcess) -> StorePlace:
        module = self._watch.module if self._last is None else ""
        owner = self._watch.object
        if self._last is not None and not owner[0]:
            owner = worker.locate(self._owner)
        return StorePlace(module, owner, self._key)

    @property
    def _key(self) -> ItemKey | None:
        if self._cell[0]:
            return None
        return self._place.name if self._last is None else self._last.attribute or self._last.item

    def _matches(self, worker: EngineProcess, top: Frame, stores: tuple[StoreTarget, ...]) -> list[bool | None]:
        """For each of `stores`: whether it writes to the place; None: unknown."""
        watch = self._watch
        if self._cell[0]:
            cell = Watch(self._place.name, started=top.started, first_line=top.first_line, is_cell=True)
            return [worker.locate(cell) == self._cell] * len(stores)
        if self._last is None and not watch.module:
            return [(top.started, top.first_line) == (watch.started, watch.first_line)] * len(stores)
        place, targets = self._store_place(worker), tuple((each.container, each.key) for each in stores)
        query = MatchStores(module=place.module, object=place.object, key=place.key, targets=targets)
        try:
            matched = worker.ask(query, idle=self._view.travel.idle)
        except AskFailed:
            return [None] * len(stores)
        return matched if len(matched) == len(stores) else [None] * len(stores)
