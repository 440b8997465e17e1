"""Search for breakpoints that stop at some of their hits, counted from the start of the run."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter

from replaydbg.debugger.breakpoints import parse_rule
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import Breakpoint, CountedHit
from replaydbg.debugger.stops.breakpoint_filter import StopFound
from replaydbg.debugger.stops.evaluated_passages import Asked, passages_between
from replaydbg.debugger.stops.exception_stops import lines_raising
from replaydbg.engine.protocol import Break

_COUNT = attrgetter("count")


def next_counted(view: ReplayView, points: Sequence[Breakpoint], last: int) -> StopFound | None:
    """Return the first hit after here, up to the line `last`, that the rule of one of `points` takes."""
    found = []
    for point in _with_rules(points):
        hits = counted_hits(view, point)
        at = bisect_right(hits, view.here.count, key=_COUNT) + point.ignore
        if at < len(hits) and hits[at].count <= last:
            found.append(_stop(point, hits[at]))
    return min(found, key=_COUNT, default=None)


def last_counted(view: ReplayView, points: Sequence[Breakpoint], first: int) -> StopFound | None:
    """Return the last hit before here, down to the line `first`, that the rule of one of `points` takes."""
    # Inside a line, that line has begun: its breakpoint was passed.
    behind = view.here.count + (view.here.moment.point > 0)
    found = []
    for point in _with_rules(points):
        hits = counted_hits(view, point)
        at = bisect_left(hits, behind, key=_COUNT) - 1 - point.ignore
        if at >= 0 and hits[at].count >= first:
            found.append(_stop(point, hits[at]))
    return max(found, key=_COUNT, default=None)


def counted_hits(view: ReplayView, point: Breakpoint) -> tuple[CountedHit, ...]:
    """Return the hits of the whole run that the rule of `point` takes, in order; the first time it replays the run.

    Raises Cancelled and EngineLost.
    """
    return view.breakpoints.counted(point, lambda: _counted(view, point))


def _with_rules(points: Sequence[Breakpoint]) -> Iterator[Breakpoint]:
    return (each for each in points if each.hits)


def _stop(point: Breakpoint, hit: CountedHit) -> StopFound:
    return StopFound(hit.count, "exception" if point.exception else "breakpoint", point.number, f"hit {hit.hit:,}")


def _counted(view: ReplayView, point: Breakpoint) -> Iterator[CountedHit]:
    rule = parse_rule(point.hits)
    for hit, count in enumerate(_all_hits(view, point), 1):
        if rule.takes(hit):
            yield CountedHit(count, hit)
        if rule.is_past(hit):
            return


def _all_hits(view: ReplayView, point: Breakpoint) -> Iterator[int]:
    """Yield the line of each place of the run where `point` is met and its condition is true."""
    if point.exception:
        yield from lines_raising(view, point)
        return
    asked = Asked(Break(point.file, point.line, point.function), point.condition)
    for each in passages_between(view, [asked], 1, view.index.total):
        yield each.count
