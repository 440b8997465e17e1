"""Switches between threads: where one was interrupted or waited, and the lines that others ran meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from replaydbg.debugger.compare.first_difference import is_own
from replaydbg.debugger.object_history import CodePlace
from replaydbg.debugger.session import Session
from replaydbg.debugger.session_results import Moment
from replaydbg.engine.protocol import RunOrder
from replaydbg.engine.reports import EndReport

MOST_LINES = 3000
"""Lines of a thread that are followed one by one, some 0.2 ms each."""

MOST_SEEKS = 300
"""The most lines of other threads that are passed on the way to a thread's first one, some 3 ms each."""

MOST_WALKED = 5000
"""Lines of all threads that are visited one after the other, some 0.2 ms each."""


class LinesRun(NamedTuple):
    """Lines of one function that a thread ran."""

    lane: int
    file: str
    first: int
    """The first line of the source that ran."""
    last: int
    """The last one of the source, not in time."""
    function: str
    is_cut: bool
    """Whether it continued: not all lines were visited."""

    def __str__(self) -> str:
        lines = f"{self.first}..{self.last}" if self.last != self.first else f"{self.first}"
        return f"{self.file}:{lines} in {self.function}{' and more' if self.is_cut else ''}"


@dataclass(frozen=True, slots=True)
class Interruption:
    """Where a thread was when it had to give way."""

    moment: Moment
    """Before the line in which it was."""
    place: CodePlace
    """That line."""
    source: str
    """Its text."""
    resumed: CodePlace | None = None
    """The line with which it went on; None: it ran no other line, or that was not found."""
    called_from: CodePlace | None = None
    """For a line of a library: the innermost line of the program's own code that called it."""
    meanwhile: tuple[LinesRun, ...] = ()
    """Lines that the other threads ran before it continued, in order."""


@dataclass(frozen=True, slots=True)
class TurnOrder:
    """Lines that threads ran one after the other, whose order decides."""

    moment: Moment
    """Before the first line of those that went on first."""
    first: tuple[LinesRun, ...]
    """Lines that these ran."""
    then: tuple[LinesRun, ...]
    """Lines that the late thread ran on its turn."""


def gave_way(session: Session, lane: int, own: int, nth: int, after: int) -> Interruption | None:
    """Return where thread `lane` gave way for the `nth` time (from 0) since its own event `own`; None: not found.

    With 0 for `own` it had no event yet, and the search begins at the event `after` of any thread.
    """
    here = session.seek(session.count_of(Moment(own or after, 1)))
    # It has just begun, or something else ran between its event and its next line.
    for count in range(here.count, min(here.count + MOST_SEEKS, session.index.total) + 1):
        here = session.seek(count)
        if here.lane == lane:
            break
    for _ in range(MOST_LINES):
        if here.lane != lane or here.top is None:
            return None
        top, before = here.top, here
        here = session.step(lane=lane)
        if here.count == before.count + 1:
            continue
        if nth == 0:
            resumed = here.top if here.lane == lane else None
            return Interruption(
                before.moment,
                CodePlace(top.file, top.line, top.function),
                session.source_line(top.file, top.line),
                CodePlace(resumed.file, resumed.line, resumed.function) if resumed is not None else None,
                _called_from(session, before.count),
                _ran(session, before.count + 1, here.count, lane),
            )
        nth -= 1
    return None


def took_turns(session: Session, after: int, late: int) -> TurnOrder | None:
    """Return the lines that others ran from the event `after` until the turn of thread `late`, and its lines then."""
    begin = session.count_of(Moment(max(after, 1), 1))
    first: list[_SwitchLine] = []
    then: list[_SwitchLine] = []
    for line in _walk(session, begin):
        if line.lane != late:
            if then:
                break
            first.append(line)
        elif first:
            then.append(line)
        # Lines that it ran before it gave way were not late.
    if not first or not then:
        return None
    return TurnOrder(session.index.moment(first[0].at), _joined(first, is_cut=False), _joined(then, is_cut=False))


class _SwitchLine(NamedTuple):
    at: int
    lane: int
    place: CodePlace


def _walk(session: Session, begin: int, end: int = 0) -> Iterator[_SwitchLine]:
    """Yield the lines from one on, up to another one, which is left out; 0: to the end, or as many as may be."""
    last = min(end or session.index.total, begin + MOST_WALKED, session.index.total)
    if begin > last:
        return
    worker = session.travel.at(begin)
    try:
        where = worker.look()
        while where.count < last or (not end and where.count == last):
            if where.stack:
                top = where.stack[0]
                yield _SwitchLine(where.count, where.lane, CodePlace(top.file, top.line, top.function))
            if where.count >= last:
                return
            session.work.idle()
            found = worker.run(RunOrder(until=where.count + 1), idle=session.travel.idle)
            if isinstance(found, EndReport):
                return
            where = found
    finally:
        worker.kill()


def _called_from(session: Session, count: int) -> CodePlace | None:
    session.seek(count)
    stack = session.ask.stack()
    if not stack or is_own(stack[0].file):
        return None
    found = next((each for each in stack if is_own(each.file)), None)
    return CodePlace(found.file, found.line, found.function) if found is not None else None


def _ran(session: Session, begin: int, end: int, but: int) -> tuple[LinesRun, ...]:
    """Return what other lanes ran between two lines."""
    lines = [each for each in _walk(session, begin, end) if each.lane != but]
    return _joined(lines, is_cut=end - begin > MOST_WALKED)


def _joined(lines: Sequence[_SwitchLine], *, is_cut: bool) -> tuple[LinesRun, ...]:
    """Return what ran, function by function: the program's own ones, if any of them did."""
    found: dict[tuple[int, str, str], list[int]] = {}
    for _, lane, place in [each for each in lines if is_own(each.place.file)] or lines:
        found.setdefault((lane, place.file, place.function), []).append(place.line)
    last = len(found)
    return tuple(
        LinesRun(lane, file, min(numbers), max(numbers), function, is_cut and number == last)
        for number, ((lane, file, function), numbers) in enumerate(found.items(), 1)
    )
