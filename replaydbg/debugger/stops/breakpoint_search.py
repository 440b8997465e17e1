"""Search for breakpoints in both directions, and logging at a line over the whole run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import Breakpoint, Logged
from replaydbg.debugger.stops.breakpoint_filter import BreakpointFilter, Hit, StopFound
from replaydbg.debugger.stops.counted_stops import last_counted, next_counted
from replaydbg.debugger.stops.evaluated_passages import Asked, passages_between
from replaydbg.debugger.stops.exception_stops import last_raised, next_raised
from replaydbg.debugger.stops.watchpoint_stops import last_change, next_change
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.protocol import Break, RunOrder
from replaydbg.engine.reports import EndReport


def forward(view: ReplayView, last: int) -> StopFound | None:
    """Return the first breakpoint after here, up to the line `last`; None: there is none."""
    enabled = [each for each in view.breakpoints if each.enabled]
    points = [each for each in enabled if not each.hits]
    found = next_counted(view, enabled, last)
    found = next_raised(view, points, found.count if found is not None else last) or found
    found = next_change(view, points, found.count if found is not None else last) or found
    lines = [each for each in points if _may_be_met(view, each)]
    if not lines:
        return found
    limit = found.count if found is not None else last
    if any(each.condition for each in lines):
        return _first_between(view, lines, view.here.count, limit) or found
    worker = view.cursor.clone()
    try:
        met = _until_one_is_met(view, worker, lines, limit)
        return met if isinstance(met, StopFound) else found
    finally:
        worker.kill()


def on(view: ReplayView, worker: EngineProcess) -> StopFound | EndReport | None:
    """Let `worker` run to the next breakpoint, wherever that is; return it, or how the program ended."""
    # Hits are counted in the recorded run.
    points = [each for each in view.breakpoints if each.enabled and each.is_of_lines and not each.hits]
    return _until_one_is_met(view, worker, points, 0)


def backward(view: ReplayView, first: int) -> StopFound | None:
    """Return the last breakpoint before here, down to the line `first`; None: there is none."""
    enabled = [each for each in view.breakpoints if each.enabled]
    points = [each for each in enabled if not each.hits]
    other = last_counted(view, enabled, first)
    other = last_raised(view, points, other.count if other is not None else first) or other
    other = last_change(view, points, other.count if other is not None else first) or other
    lines = [each for each in points if _may_be_met(view, each)]
    filter_ = BreakpointFilter(view, lines)
    lowest = other.count if other is not None else first
    # Inside a line, that line has begun: its breakpoint was passed.
    behind = view.here.count + (view.here.moment.point > 0)
    upper = behind - 1
    for begin in view.travel.timeline.earlier(behind):
        if not lines or upper <= lowest - (other is None):
            break
        if begin < upper:
            found = _last_between(view, filter_, lines, begin, upper)
            if found is not None and found.count >= lowest:
                return found
        upper = begin
    return other


def first_own(view: ReplayView) -> int:
    """Return the count of the first line of the script, module or command that the program was started with."""
    header = view.header
    endings = {
        "script": (os.path.normpath(Path(header.cwd) / header.target),),
        "module": (header.target.replace(".", "/") + "/__main__.py", header.target.replace(".", "/") + ".py"),
        "command": ("<string>",),
    }.get(header.kind, (header.target.rstrip("/") + "/__main__.py",))
    bodies = [each.file for each in view.index.hits if each.function == "<module>"]
    file = next((each for ending in endings for each in bodies if each.endswith(ending)), None)
    if file is None:
        return 1
    worker = view.travel.at(1)
    try:
        order = RunOrder(until=view.index.total, breaks=(Break(file=file, function="<module>"),))
        where = worker.run(order, idle=view.travel.idle)
        return 1 if isinstance(where, EndReport) or where.why != "break" else where.count
    finally:
        worker.kill()


def passages(view: ReplayView, place: Break, first: int = 1) -> Iterator[int]:
    """Yield the count of lines at each passage of a line, or a function's first one, after the line `first`."""
    worker = view.travel.at(first)
    order = RunOrder(until=view.index.total, breaks=(place,))
    try:
        while not isinstance(where := worker.run(order, idle=view.travel.idle), EndReport) and where.why == "break":
            view.travel.idle()
            yield where.count
    finally:
        worker.kill()


def last_passage(view: ReplayView, file: str, line: int, until: int) -> tuple[int, int]:
    """Return the last count up to `until` at which a line ran, and the thread that ran it; zeros: there is none."""
    worker = view.travel.at(1)
    try:
        where = worker.run(RunOrder(until=until, breaks=(Break(file, line, stop_at=0),)), idle=view.travel.idle)
    finally:
        worker.kill()
    count = where.passages[0].last if not isinstance(where, EndReport) else 0
    return (count, view.look_at(count).lane) if count else (0, 0)


def log(view: ReplayView, file: str, line: int, expression: str, condition: str) -> Iterator[Logged]:
    """Yield what `expression` was at each passage of a line."""
    asked = Asked(Break(file=file, line=line), condition, expression)
    for each in passages_between(view, [asked], 1, view.index.total):
        yield Logged(each.count, view.index.moment(each.count), each.lane, each.text)


# ---- lines ----


def _breaks(points: Sequence[Breakpoint], stop_at: int) -> tuple[Break, ...]:
    return tuple(Break(each.file, each.line, each.function, stop_at) for each in points)


def _may_be_met(view: ReplayView, point: Breakpoint) -> bool:
    if not point.is_of_lines:
        return False
    if point.function:
        return True
    return point.line in view.index.lines_hit(point.file)


def _next_met(
    view: ReplayView, worker: EngineProcess, points: Sequence[Breakpoint], limit: int
) -> list[Breakpoint] | EndReport:
    """Let `worker` run to the next of `points`, up to the line `limit`, 0 for any; return those that are met there.

    None are if it came to the limit. Or how the program ended.
    """
    if limit and worker.count >= limit:
        return []
    where = worker.run(RunOrder(until=limit, breaks=_breaks(points, 1)), idle=view.travel.idle)
    if isinstance(where, EndReport):
        return where
    # A hit that does not stop it takes too little time for `run` to check for cancellation.
    view.travel.idle()
    passed = zip(points, where.passages, strict=True)
    return [point for point, passages in passed if where.why == "break" and passages.last == where.count]


def _until_one_is_met(
    view: ReplayView, worker: EngineProcess, points: Sequence[Breakpoint], limit: int
) -> StopFound | EndReport | None:
    filter_ = BreakpointFilter(view, points)
    while met := _next_met(view, worker, points, limit):
        if isinstance(met, EndReport):
            return met
        for point in met:
            passage = filter_.hit(point, worker)
            if passage is not None and not filter_.consumes_ignore(point):
                return StopFound(passage.count, "breakpoint", point.number, passage.note)
    return None


def _asked(points: Sequence[Breakpoint]) -> list[Asked]:
    return [Asked(place, point.condition) for point, place in zip(points, _breaks(points, 0), strict=True)]


def _first_between(view: ReplayView, points: Sequence[Breakpoint], first: int, last: int) -> StopFound | None:
    """The first one that is met after the line `first` and not after `last`."""
    filter_ = BreakpointFilter(view, points)
    for each in passages_between(view, _asked(points), first, last):
        if not filter_.consumes_ignore(points[each.asked]):
            return StopFound(each.count, "breakpoint", points[each.asked].number, each.note)
    return None


def _last_between(
    view: ReplayView, filter_: BreakpointFilter, points: Sequence[Breakpoint], begin: int, last: int
) -> StopFound | None:
    """The last one that is met after the line `begin` and not after `last`."""
    plain = [each for each in points if not each.condition and not each.ignore]
    careful = [each for each in points if each.condition or each.ignore]
    found: list[StopFound] = []
    if plain:
        where = view.travel.scan(begin, last, RunOrder(breaks=_breaks(plain, 0)))
        met = zip(plain, where.passages, strict=True)
        found += [StopFound(passages.last, "breakpoint", point.number) for point, passages in met if passages.last]
    if careful:
        met_with_conditions = list(passages_between(view, _asked(careful), begin, last))
        for number, point in enumerate(careful):
            hits = [Hit(each.count, each.note) for each in met_with_conditions if each.asked == number]
            passage = filter_.last(point, hits)
            if passage is not None:
                found.append(StopFound(passage.count, "breakpoint", point.number, passage.note))
    return max(found, key=lambda each: each.count, default=None)
