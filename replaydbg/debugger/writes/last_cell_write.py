"""The last line that gave a cell or column of a data frame its value, found backward from the current position."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

from replaydbg.classes import dataclass
from replaydbg.debugger.data_frames.cell_changes import NOWHERE, CellPlace, CellState, own_frame, read, watches_of
from replaydbg.debugger.line_inputs import MOST_EVENTS
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import LastWrite
from replaydbg.debugger.source.place_expressions import names_read
from replaydbg.debugger.writes.equal_cell_writes import EqualCellWrites
from replaydbg.debugger.writes.last_write import IN_CELL, AddressMismatch
from replaydbg.engine.protocol import PathStep, RunOrder, Watch, Watches
from replaydbg.engine.reports import Changes, Frame
from replaydbg.engine.scan import whereabouts
from replaydbg.errors import UsageError

MOST_MOVES = 500
"""The most candidates that are examined, some 30 ms each: operations that moved the cell and left it equal."""

_ONLY_LIFE = (PathStep(field=("", 0)),)
"""A step that leads nowhere: the watch on an object with it shows only that the object is made or dies."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """The last change of something that is watched."""

    seen: int
    written: int
    line: Frame
    """The program's own line that did it, or whose call did."""
    lane: int


@dataclass(frozen=True, slots=True)
class _Found:
    """The line that changed the cell."""

    candidate: _Candidate
    before: CellState
    after: CellState
    is_argument: bool = False


def why_cell(view: ReplayView, place: CellPlace) -> LastWrite:
    """Return the line that last gave a cell or column the value that it has here; see `last_write.why`.

    It is followed through the variable: if that was bound to another data frame with the same value in the cell, the
    search goes on in the data frame that it had before. What a call passed is followed in the data frame itself.
    """
    search = _Search(view, place)
    state = read(view, view.cursor, place, place.watch)
    upper = view.here.count
    found = None
    if view.here.moment.point:
        found, state = search.by_this_line(state)
    found = found or search.last(place.watch, state, upper)
    if found is None:
        if not state.content.text:
            raise UsageError(f"{place.source!r} cannot be tracked: it does not exist, and never did.")
        note = f"more than {MOST_MOVES} operations left it equal" if search.is_cut else ""
        nothing = LastWrite(place.source, 0, None, "", 0, "", 0, "", "", "", False, (), ())
        return replace(nothing, note=note)
    answer = search.answer(found)
    later = EqualCellWrites(view, place, search.owners).since(found.candidate.seen, answer)
    if later.why is not None:
        return replace(later.why, note=later.note)
    answer = replace(answer, note=later.note)
    content = search.content_of(found) if answer.is_binding else None
    return replace(answer, content=content if content is not None and content.count != answer.count else None)


class _Search:
    def __init__(self, view: ReplayView, place: CellPlace) -> None:
        self.view, self.place = view, place
        self.is_cut = False
        self.owners: dict[tuple[int, int], tuple[int, int]] = {}
        """The data frames that had the value since the change, and the lines between which they had it."""

    def last(self, root: Watch, state: CellState, upper: int) -> _Found | None:
        """Return the last change before the line `upper`, at which the cell has `state`; None: there is none."""
        for _ in range(MOST_MOVES):
            candidate = self._candidate(root, state, upper)
            if candidate is None:
                return None
            _, until = self.owners.get(state.owner, (0, upper))
            self.owners[state.owner] = (candidate.seen, until)
            if root.started and candidate.seen <= root.started:
                return self._passed(root, candidate, state)
            before = self._before(root, candidate.line.last, candidate.seen)
            if state.is_equal(before):
                state, upper = before, candidate.line.last
                continue
            between = self._before(root, candidate.written, candidate.seen)
            if state.is_equal(between) and candidate.written > candidate.line.last:
                state, upper = between, candidate.written
                continue
            return _Found(candidate, before, state)
        self.is_cut = True
        return None

    def by_this_line(self, state: CellState) -> tuple[_Found | None, CellState]:
        """Return the change by the line that the position is inside, None if there is none, and the cell before it."""
        count = self.view.here.count
        before = self._before(self.place.watch, count, 0)
        if state.is_equal(before):
            return None, before
        with closing(self.view.travel.at(count)) as worker:
            stood, line = worker.look(), own_frame(tuple(worker.stack()))
        return _Found(_Candidate(count, count, line, stood.lane), before, state), before

    def content_of(self, found: _Found) -> LastWrite | None:
        """Return the last write of the cell in the data frame that the variable was bound to; None: not known."""
        try:
            root = Watch("", object=found.after.owner, stops=False)
            inner = self.last(root, found.after, found.candidate.seen)
        except AddressMismatch:
            return None
        return self.answer(inner) if inner is not None else None

    def _passed(self, root: Watch, candidate: _Candidate, state: CellState) -> _Found | None:
        """Go on where a function began: in the object that has the data frame, or in the data frame that was passed."""
        owner = replace(root, steps=root.steps[:-1], is_cell=self.place.is_shared)
        with closing(self.view.travel.at(candidate.seen)) as worker:
            located = worker.locate(owner) if root.steps or owner.is_cell else state.owner
        steps = IN_CELL if owner.is_cell else root.steps[-1:]
        try:
            return self.last(Watch("", object=located, steps=steps, stops=False), state, candidate.seen)
        except AddressMismatch:
            return _Found(candidate, NOWHERE, state, is_argument=True)

    # ---- one step back ----

    def _candidate(self, root: Watch, state: CellState, upper: int) -> _Candidate | None:
        """Return the last change of what is watched before the line `upper`. Raises AddressMismatch."""
        watches = watches_of(root, state)
        for changes in self._stretches(watches, upper):
            changed = [pair for pair in zip(watches, changes, strict=True) if pair[1].count]
            if changed:
                watch, last = max(changed, key=lambda pair: pair[1].last_seen)
                return self._close(watch, last)
        return None

    def _stretches(self, watches: tuple[Watch, ...], upper: int) -> Iterator[tuple[Changes, ...]]:
        travel = self.view.travel
        with closing(travel.at(upper)) as worker:
            lies = whereabouts(worker, watches)
        with closing(travel.scans_back(upper, RunOrder(watch=Watches(watches)))) as scans:
            for each in scans:
                # An object is known by its address: that must be the same on both sides of a checkpoint.
                if each.ends != lies:
                    raise AddressMismatch
                yield each.where.all_changes
                lies = each.begins

    def _close(self, watch: Watch, changes: Changes) -> _Candidate:
        seen = changes.last_seen
        close = self.view.travel.look_closely(seen, replace(watch, stops=True, looks_at_returns=True))
        written = close.changes.first_written if close.changes.count else changes.last_written
        with closing(self.view.travel.at(written)) as worker:
            stood = worker.look()
            line = own_frame(tuple(worker.stack()))
        return _Candidate(seen, written, line, stood.lane)

    def _before(self, root: Watch, count: int, seen: int) -> CellState:
        """Return the cell at an earlier line; before an object was made, another one may lie at its address."""
        if root.object[0] and seen > count and self._is_born(root, count, seen):
            return NOWHERE
        with closing(self.view.travel.at(count)) as worker:
            return read(self.view, worker, self.place, root)

    def _is_born(self, root: Watch, first: int, last: int) -> bool:
        life = replace(root, steps=_ONLY_LIFE)
        return bool(self.view.travel.scan(first, last, RunOrder(watch=life)).changes.born)

    # ---- the answer ----

    def answer(self, found: _Found) -> LastWrite:
        """Return what is reported of a change."""
        view, line = self.view, found.candidate.line
        source = view.source_line(line.file, line.line)
        is_bound = found.before.owner != found.after.owner
        return LastWrite(
            expression=self.place.source,
            count=line.last,
            moment=view.index.moment(line.last),
            file=line.file,
            line=line.line,
            function=line.function,
            lane=found.candidate.lane,
            source=source,
            before=found.before.content.text,
            after=found.after.content.text,
            is_argument=found.is_argument,
            events=tuple(view.index.events_between(line.last, found.candidate.seen))[-MOST_EVENTS:],
            names=names_read(source, view.sources.text(line.file)),
            is_binding=is_bound and not found.is_argument,
        )
