"""Stopping where a value has changed, in both directions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from replaydbg.debugger.stops import Found, Passage, Sieve, told
from replaydbg.debugger.values import Breakpoint
from replaydbg.engine.messages import Run

if TYPE_CHECKING:
    from replaydbg.debugger.session import Session
    from replaydbg.engine.worker import Worker


def next_change(session: Session, points: Sequence[Breakpoint], last: int) -> Found | None:
    """Return the first line after here, up to `last`, before which one of the values has changed."""
    sieve = Sieve(session, points)
    found = None
    for point in points:
        if point.watch is None:
            continue
        worker = session.cursor.clone()
        try:
            changes = _changes(session, sieve, point, worker, last)
            passage = next((each for each in changes if not sieve.lets_pass(point)), None)
        finally:
            worker.kill()
        if passage is not None:
            last = passage.count
            found = _found(point, passage)
    return found


def last_change(session: Session, points: Sequence[Breakpoint], first: int) -> Found | None:
    """Return the last line before here, down to `first`, before which one of the values had changed."""
    sieve = Sieve(session, points)
    found = None
    for point in points:
        upper = session.here.count - (session.here.moment.point == 0)
        for begin in session.travel.timeline.earlier(upper) if point.watch is not None else ():
            if upper <= first:
                break
            passage = sieve.last(point, _changes_between(session, sieve, point, begin, upper))
            if passage is not None and passage.count >= first:
                first = passage.count
                found = _found(point, passage)
                break
            upper = begin
    return found


def _found(point: Breakpoint, passage: Passage) -> Found:
    return Found(passage.count, "watch", point.number, told(f"{point.place} has changed", passage))


def _changes(session: Session, sieve: Sieve, point: Breakpoint, worker: Worker, last: int) -> Iterator[Passage]:
    """Let `worker` run to the line `last`; yield the changes that it meets and whose condition is true."""
    assert point.watch is not None, point
    order = Run(until=last, watch=replace(point.watch, stops=True))
    while worker.count < last:
        where = worker.run(order, idle=session.travel.idle)
        if isinstance(where, dict) or not where.changes.count:
            return
        # What does not stop it takes too little time for `run` to ask whether to give up.
        session.travel.idle()
        passage = sieve.passage(point, worker)
        if passage is not None:
            yield passage


def _changes_between(session: Session, sieve: Sieve, point: Breakpoint, begin: int, last: int) -> list[Passage]:
    """The changes after the line `begin` and not after `last`; if all of them stop it, the last one is enough."""
    if point.condition or point.ignore:
        worker = session.travel.at(begin)
        try:
            return list(_changes(session, sieve, point, worker, last))
        finally:
            worker.kill()
    assert point.watch is not None, point
    changes = session.travel.scan(begin, last, Run(watch=replace(point.watch, stops=False))).changes
    return [Passage(changes.last_seen, "")] if changes.count else []
