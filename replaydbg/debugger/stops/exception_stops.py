"""Search for raised exceptions in both directions, in the list that the first pass made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from replaydbg.debugger.exception_types import is_by_own_code, is_one_of
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import Breakpoint, Raised
from replaydbg.debugger.stops.breakpoint_filter import BreakpointFilter, Hit, StopFound, described
from replaydbg.engine.engine_process import EngineProcess


def next_raised(view: ReplayView, points: Sequence[Breakpoint], last: int) -> StopFound | None:
    """Return the first exception after here, up to the line `last`, that one of `points` is for."""
    wanted = _wanted(view, points)
    if not wanted:
        return None
    raised = [each for each in view.index.raised if view.here.count < each.count <= last]
    worker = view.cursor.clone()

    def stand_at(count: int) -> AbstractContextManager[EngineProcess]:
        return nullcontext(view.travel.arrived(worker, count) if worker.count < count else worker)

    try:
        return _first(view, wanted, raised, stand_at)
    finally:
        worker.kill()


def last_raised(view: ReplayView, points: Sequence[Breakpoint], first: int) -> StopFound | None:
    """Return the last exception before here, down to the line `first`, that one of `points` is for."""

    @contextmanager
    def stand_at(count: int) -> Iterator[EngineProcess]:
        worker = view.travel.at(count)
        try:
            yield worker
        finally:
            worker.kill()

    wanted = _wanted(view, points)
    raised = [each for each in view.index.raised if first <= each.count < view.here.count]
    return _first(view, wanted, raised[::-1], stand_at)


def lines_raising(view: ReplayView, point: Breakpoint) -> Iterator[int]:
    """Yield the line of each exception of the run that `point` is for and where its condition is true, in order."""
    filter_ = BreakpointFilter(view, [point])
    before = 0
    for each in view.index.raised:
        # A line that raises several times is passed once.
        if each.count == before or not _is_for(point, view.types_named(point.exception), each):
            continue
        before = each.count
        if point.condition:
            worker = view.travel.at(each.count)
            try:
                if filter_.hit(point, worker) is None:
                    continue
            finally:
                worker.kill()
        yield each.count


def _is_for(point: Breakpoint, types: frozenset[str], raised: Raised) -> bool:
    return is_one_of(raised, types) and (not point.is_own or is_by_own_code(raised, point.own_code))


def _wanted(view: ReplayView, points: Sequence[Breakpoint]) -> list[tuple[Breakpoint, frozenset[str]]]:
    """Return those that are for exceptions, with the types that each is for."""
    return [(each, view.types_named(each.exception)) for each in points if each.exception]


def _first(
    view: ReplayView,
    wanted: Sequence[tuple[Breakpoint, frozenset[str]]],
    raised: Sequence[Raised],
    stand_at: Callable[[int], AbstractContextManager[EngineProcess]],
) -> StopFound | None:
    filter_ = BreakpointFilter(view, [point for point, _ in wanted])
    met: set[tuple[int, int]] = set()  # a line that raises several times is passed once
    for each in raised:
        for point, types in wanted:
            if not _is_for(point, types, each) or (point.number, each.count) in met:
                continue
            met.add((point.number, each.count))
            passage: Hit | None = Hit(each.count, "")
            if point.condition:
                with stand_at(each.count) as worker:
                    passage = filter_.hit(point, worker)
            if passage is not None and not filter_.consumes_ignore(point):
                return StopFound(each.count, "exception", point.number, described(each.text, passage))
    return None
