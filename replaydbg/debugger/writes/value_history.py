"""All changes of a value over the whole run, from the first one."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import count, islice

from replaydbg.classes import dataclass
from replaydbg.debugger.data_frames.cell_changes import CellPlace, cell_changes, own_frame
from replaydbg.debugger.frame_queries import At
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import ValueChange
from replaydbg.debugger.source.place_expressions import PlaceExpression
from replaydbg.debugger.writes.deep_changes import deeper_change_note
from replaydbg.debugger.writes.last_write import IN_CELL, place_named, text_at, watch_at
from replaydbg.debugger.writes.named_cells import cell_named
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.protocol import RunOrder, Watch
from replaydbg.engine.reports import EndReport, Where

MOST_BIRTHS = 20_000
"""The most changes that are skipped to find the creation of an object, some 0.1 ms each."""

_MAIN = Watch("__name__", module="__main__")


class ValueHistory:
    """The changes of a value over the whole run, in order, found as they are asked for; once."""

    def __init__(self, view: ReplayView, expression: str, at: At, most: int) -> None:
        """`most`: the number of changes after which it ends."""
        self._view = view
        self._expression, self._at = expression, at
        self._most = most
        self.note = ""
        """A note about unseen changes, known at the end."""

    def __iter__(self) -> Generator[ValueChange, None, None]:
        """Yield them. Raises UsageError, AskFailed."""
        view = self._view
        cell = cell_named(view, self._expression, self._at)
        if cell is not None:
            yield from islice(_cell_values(view, cell), self._most)
            return
        place = place_named(view, self._expression, self._at)
        followed = _followed(view, place, self._at)
        seen = yield from _changes(view, followed, self._most)
        if seen:
            self.note = self._unseen(place, followed.watch, seen) or view.ask.opaque_content_note(place, self._at)

    def _unseen(self, place: PlaceExpression, watch: Watch, seen: int) -> str:
        view = self._view
        # A function's variables are gone at the program's end.
        for until in (min(view.index.end + 1, view.index.total), view.here.count):
            if until > seen and (note := deeper_change_note(view, place, watch, seen, until)):
                return note
        return ""


@dataclass(frozen=True, slots=True)
class _Followed:
    """The watch that shows the changes of a value."""

    watch: Watch
    since: int
    """From this line on."""
    is_shared: bool
    """It is a variable that functions share."""


def _followed(view: ReplayView, place: PlaceExpression, at: At) -> _Followed:
    """Return the watch.

    An attribute or item reached through a local variable is tracked in that very object, because the variable exists
    for one call only. The same holds for a variable that functions share, which has a cell of its own.
    """
    watch = watch_at(view, place, at)
    is_shared = watch.is_cell
    owning, plain = replace(watch, steps=place.steps[:-1]), replace(watch, is_cell=False)
    if is_shared or (place.steps and not watch.module):
        owner = view.cursor.locate(owning)
        very_one = Watch("", object=owner, steps=place.steps[-1:] or IN_CELL)
        born = _birth(view, very_one) if owner[0] else 0
        if born:
            return _Followed(very_one, born, is_shared)
    return _Followed(plain, max(watch.started - 1, 1), is_shared)


def _changes(view: ReplayView, followed: _Followed, most: int) -> Generator[ValueChange, None, int]:
    """Yield the changes; return the line before which the last one was seen, 0 if others may have followed."""
    watch = followed.watch
    seen = found = 0
    with closing(view.travel.at(followed.since)) as worker:
        for number in count():
            where = worker.run(RunOrder(until=view.index.total, watch=watch), idle=view.travel.idle)
            if isinstance(where, EndReport) or not where.changes.count:
                return seen
            view.work.idle(where.count)
            if watch.object[0] and number and where.changes.born and where.count > view.here.count:
                return 0  # another object at the same address
            is_gone = watch.object[0] and worker.locate(replace(watch, steps=())) != watch.object
            if where.count > view.index.end and (is_gone or not worker.locate(_MAIN)[0]):
                return seen  # the interpreter has dropped the exception or the modules: no line of the program did
            change = _change(view, worker, watch, where)
            if followed.is_shared and is_gone and not change.text:
                return 0  # the functions that have it have ended
            # The object itself comes before what it has.
            if number or change.text or not watch.object[0]:
                found += 1
                view.work.count_found()
                yield change
            if found == most:
                break
            seen = where.count
    return 0


def _cell_values(view: ReplayView, cell: CellPlace) -> Iterator[ValueChange]:
    """Yield the changes of a cell of a data frame, by the lines of the program's own that made them."""
    with closing(view.travel.at(max(cell.watch.started - 1, 1))) as worker:
        for each in cell_changes(view, cell, worker, view.index.end + 1):
            with closing(view.travel.at(each.written)) as writer:
                stood, line = writer.look(), own_frame(tuple(writer.stack()))
            yield ValueChange(
                count=line.last,
                moment=view.index.moment(line.last),
                file=line.file,
                line=line.line,
                function=line.function,
                lane=stood.lane,
                text=each.state.content.text,
            )


def _birth(view: ReplayView, watch: Watch) -> int:
    """Return the count of the line before which the object that `watch` begins at is not there yet; 0: not known."""
    since = 1
    with closing(view.travel.at(1)) as worker:
        for _ in range(MOST_BIRTHS):
            where = worker.run(RunOrder(until=view.here.count, watch=watch), idle=view.travel.idle)
            if isinstance(where, EndReport):
                return 0
            view.work.idle()
            if not where.changes.count:
                lies = worker.locate(replace(watch, steps=()))
                return since if lies == watch.object else 0
            if where.changes.born:
                since = max(where.count - 1, 1)
    return 0


def _change(view: ReplayView, worker: EngineProcess, watch: Watch, where: Where) -> ValueChange:
    changes = where.changes
    close = view.travel.look_closely(changes.first_seen, replace(watch, looks_at_returns=True))
    written = close.changes.first_written if close.changes.count else changes.first_written
    # Another thread may be the first to see it.
    stood = view.look_at(written)
    line = stood.stack[0]
    return ValueChange(
        count=written,
        moment=view.index.moment(written),
        file=line.file,
        line=line.line,
        function=line.function,
        lane=stood.lane,
        text=text_at(view, worker, watch),
    )
