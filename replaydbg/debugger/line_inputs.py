"""Inputs of a line: the events from its beginning to the next line, or to the exception that ended it."""

from __future__ import annotations

from bisect import bisect_left

from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import Raised
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.protocol import RunOrder
from replaydbg.engine.reports import EndReport, Where

MOST_EVENTS = 20
"""The most events of one line that are returned: the last ones."""

MOST_RAISED = 1000
"""The most exceptions of functions called by a line that are passed on the way to its own."""


def inputs_of(view: ReplayView, count: int, seen: int, raised: Where | None = None) -> tuple[int, ...]:
    """Return the last events that the line `count` took before the line `seen`, and before it raised.

    `raised`: where it did, if that is known.
    """
    events = view.index.events_between(count, seen)
    uncaught = view.index.uncaught
    if raised is None and uncaught is not None and seen > uncaught.count:
        # After an uncaught exception the interpreter prints it and flushes the streams: no line does that.
        raised = where_raised(view, uncaught) if count == uncaught.count else None
        if raised is None and (count == uncaught.count or seen > view.index.end):
            return ()
    if raised is not None:
        events = range(events.start, max(min(bisect_left(view.index.starts, seen), raised.event + 1), events.start))
    return tuple(events)[-MOST_EVENTS:]


def where_raised(view: ReplayView, raised: Raised) -> Where | None:
    """Return the position at which the program raised an exception; None: unknown."""
    worker = view.travel.at(raised.count)
    try:
        return run_to_raise(view, worker, raised)
    finally:
        worker.kill()


def run_to_raise(view: ReplayView, worker: EngineProcess, raised: Raised) -> Where | None:
    """Let `worker` run from the line of an exception to where it is raised; None: unknown."""
    line = [each for each in view.index.raised_at(raised.count) if each.lane == raised.lane]
    # The exception that ended the program is reported with more of its text; it is the last of that type in its line.
    same = [at for at, each in enumerate(line) if each == raised or (raised.is_uncaught and each.type == raised.type)]
    if not same:
        return None  # it was raised in no frame: a syntax error of the program itself
    before = same[-1 if raised.is_uncaught else 0]
    for _ in range(MOST_RAISED):
        where = worker.run(RunOrder(at_raises=True), idle=view.work.idle)
        if isinstance(where, EndReport) or where.why != "raise":
            return None
        if (_line_that_raised(where), where.lane) == (raised.count, raised.lane):
            if before == 0:
                return where
            before -= 1
    return None


def _line_that_raised(where: Where) -> int:
    # Frames of the importer's own run no lines that count: then it is the thread's last one; see engine.c.
    own = where.stack[0].last if where.stack else 0
    return own or next((each.last for each in where.lanes if each.id == where.lane), 0)
