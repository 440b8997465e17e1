"""Search for changes of a watched value in both directions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from replaydbg.debugger.data_frames.cell_changes import CellPlace, cell_changes
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import Breakpoint
from replaydbg.debugger.stops.breakpoint_filter import BreakpointFilter, Hit, StopFound, described
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.protocol import RunOrder
from replaydbg.engine.reports import EndReport


def next_change(view: ReplayView, points: Sequence[Breakpoint], last: int) -> StopFound | None:
    """Return the first line after here, up to `last`, before which one of the values has changed."""
    filter_ = BreakpointFilter(view, points)
    found = None
    for point in points:
        if point.watch is None:
            continue
        worker = view.cursor.clone()
        try:
            changes = _changes(view, filter_, point, worker, last)
            passage = next((each for each in changes if not filter_.consumes_ignore(point)), None)
        finally:
            worker.kill()
        if passage is not None:
            last = passage.count
            found = _found(point, passage)
    return found


def last_change(view: ReplayView, points: Sequence[Breakpoint], first: int) -> StopFound | None:
    """Return the last line before here, down to `first`, before which one of the values had changed."""
    filter_ = BreakpointFilter(view, points)
    found = None
    for point in points:
        upper = view.here.count - (view.here.moment.point == 0)
        for begin in view.travel.timeline.earlier(upper) if point.watch is not None else ():
            if upper <= first:
                break
            passage = filter_.last(point, _changes_between(view, filter_, point, begin, upper))
            if passage is not None and passage.count >= first:
                first = passage.count
                found = _found(point, passage)
                break
            upper = begin
    return found


def _found(point: Breakpoint, passage: Hit) -> StopFound:
    return StopFound(passage.count, "watch", point.number, described(f"{point.place} has changed", passage))


def _changes(
    view: ReplayView, filter_: BreakpointFilter, point: Breakpoint, worker: EngineProcess, last: int, most: int = 0
) -> Iterator[Hit]:
    """Let `worker` run to the line `last`; yield the changes that it meets and whose condition is true.

    `most`: see `cell_changes`.
    """
    assert point.watch is not None, point
    if point.cell:
        place = CellPlace(point.place, replace(point.watch, stops=False), point.cell)
        for _ in cell_changes(view, place, worker, last, most):
            if (passage := filter_.hit(point, worker)) is not None:
                yield passage
        return
    order = RunOrder(until=last, watch=replace(point.watch, stops=True))
    while worker.count < last:
        where = worker.run(order, idle=view.travel.idle)
        if isinstance(where, EndReport) or not where.changes.count:
            return
        # A change that does not stop it takes too little time for `run` to check for cancellation.
        view.travel.idle()
        passage = filter_.hit(point, worker)
        if passage is not None:
            yield passage


def _changes_between(
    view: ReplayView, filter_: BreakpointFilter, point: Breakpoint, begin: int, last: int
) -> list[Hit]:
    """The changes after the line `begin` and not after `last`; if all of them stop it, the last one is enough."""
    if point.condition or point.ignore or point.cell:
        worker = view.travel.at(begin)
        try:
            return list(_changes(view, filter_, point, worker, last, view.here.count - (view.here.moment.point == 0)))
        finally:
            worker.kill()
    assert point.watch is not None, point
    changes = view.travel.scan(begin, last, RunOrder(watch=replace(point.watch, stops=False))).changes
    return [Hit(changes.last_seen, "")] if changes.count else []
