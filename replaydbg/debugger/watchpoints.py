"""Stopping where a value has changed, in both directions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from replaydbg.debugger.values import Breakpoint
from replaydbg.engine.messages import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from replaydbg.debugger.session import Session


def next_change(session: Session, points: Sequence[Breakpoint], last: int) -> tuple[int, Breakpoint] | None:
    """Return the first line after here, up to `last`, before which one of the values has changed, and which."""
    found = None
    for point in points:
        if point.watch is None or not point.enabled:
            continue
        worker = session.cursor.clone()
        try:
            where = worker.run(Run(until=last, watch=replace(point.watch, stops=True)), idle=session.travel.idle)
        finally:
            worker.kill()
        if not isinstance(where, dict) and where.changes.count and where.count <= last:
            last = where.count
            found = (where.count, point)
    return found


def last_change(session: Session, points: Sequence[Breakpoint], first: int) -> tuple[int, Breakpoint] | None:
    """Return the last line before here, down to `first`, before which one of the values had changed, and which."""
    found = None
    for point in points:
        if point.watch is None or not point.enabled:
            continue
        upper = session.here.count - 1
        for begin in session.travel.timeline.earlier(upper):
            if upper <= first:
                break
            seen = session.travel.scan(begin, upper, Run(watch=replace(point.watch, stops=False))).changes.last_seen
            if seen >= first:
                first = seen
                found = (seen, point)
                break
            upper = begin
    return found
