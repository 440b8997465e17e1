"""Conditions and logged expressions at each passage of some lines.

They are evaluated in the process that passes the lines, if they certainly change nothing there: that takes some
microseconds a passage. Otherwise a copy is asked, which takes milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from replaydbg.classes import dataclass
from replaydbg.debugger.bisection.verdict_answers import is_disturbed
from replaydbg.debugger.frame_queries import condition_raised
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.stops.guarded_expressions import guarded
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.protocol import Break, RunOrder
from replaydbg.engine.queries import EvaluatePassages
from replaydbg.engine.reports import EndReport, EvaluatedPassage
from replaydbg.errors import AskFailed, EngineLost

AT_ONCE = 1_000
"""Passages after which a process reports what it has found."""

LONGEST = 10.0
"""Seconds that a process may take from one report to the next; then it may hang in an expression."""

MOST_REFUSED = 20
"""Refused passages that are evaluated in copies. If there are more, and more than were evaluated in the process, all
further ones are."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A line, or the beginning of a function, and what to evaluate there."""

    place: Break
    condition: str = ""
    """Empty: every passage counts."""
    expression: str = ""
    """Empty: none is logged."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage whose condition is true, or cannot be evaluated."""

    asked: int
    """Which of those that were asked, from 0."""
    count: int
    lane: int
    note: str
    """Why the condition could not be evaluated; may be empty."""
    text: str
    """The value of the expression, or how it failed."""


class _NotInProcess(Exception):
    """The process ended, hung, or took another path than the recorded one: copies are to be asked."""


def passages_between(view: ReplayView, asked: Sequence[Asked], first: int, last: int) -> Iterator[Passage]:
    """Yield the passages after the line `first`, up to the line `last`, in order. Raises Cancelled and EngineLost."""
    inner = [count for count in view.travel.timeline.counts() if first < count < last]
    search = _Search(view, asked)
    for begin, end in zip([first, *inner], [*inner, last], strict=True):
        if begin < end:
            yield from search.between(begin, end)


class _Search:
    """A search for passages, stretch by stretch."""

    def __init__(self, view: ReplayView, asked: Sequence[Asked]) -> None:
        self._view, self._asked = view, asked
        self._query = _query(asked)
        """None: copies are asked."""
        self._refused = self._evaluated = 0

    def between(self, begin: int, end: int) -> Iterator[Passage]:
        """Yield the passages of a stretch."""
        if self._query is not None:
            try:
                yield from self._in_process(self._query, begin, end)
                return
            except _NotInProcess:
                self._query = None
        yield from self._by_copies(begin, end)

    def _in_process(self, query: EvaluatePassages, begin: int, end: int) -> list[Passage]:
        view, found = self._view, list[Passage]()
        order = RunOrder(until=end, breaks=self._breaks(0), passages=query, most_passages=AT_ONCE)
        with _process_at(view, begin) as worker:
            while worker.count < end:
                try:
                    where = worker.run(order, idle=self._in_time())
                except EngineLost as error:
                    raise _NotInProcess from error
                if isinstance(where, EndReport):
                    raise _NotInProcess
                found += self._read(worker, where.evaluated)
                view.travel.idle()
            if is_disturbed(view, worker.look()):
                raise _NotInProcess
        return found

    def _in_time(self) -> Callable[[], None]:
        until = time.monotonic() + LONGEST

        def idle() -> None:
            self._view.travel.idle()
            if time.monotonic() > until:
                raise _NotInProcess

        return idle

    def _read(self, worker: EngineProcess, evaluated: Sequence[EvaluatedPassage]) -> Iterator[Passage]:
        for each in evaluated:
            if each.number > len(self._asked):
                raise _NotInProcess
            if each.answer is not None:
                self._evaluated += 1
                raised, text = each.answer
                note = condition_raised(raised) if raised else ""
                yield Passage(each.number - 1, each.count, each.lane, note, text)
                continue
            # It was refused, and the process stands there.
            self._refused += 1
            if each.count != worker.count or self._refused > max(self._evaluated, MOST_REFUSED):
                raise _NotInProcess
            passage = self._by_copy(worker, each.number - 1)
            if passage is not None:
                yield passage

    # ---- by copies ----

    def _by_copies(self, begin: int, end: int) -> Iterator[Passage]:
        view = self._view
        order = RunOrder(until=end, breaks=self._breaks(1))
        with _process_at(view, begin) as worker:
            while worker.count < end:
                where = worker.run(order, idle=view.travel.idle)
                if isinstance(where, EndReport) or where.why != "break":
                    return
                view.travel.idle()
                for number, passages in enumerate(where.passages):
                    passage = self._by_copy(worker, number) if passages.last == where.count else None
                    if passage is not None:
                        yield passage

    def _by_copy(self, worker: EngineProcess, number: int) -> Passage | None:
        """Return the passage where `worker` is; None: its condition is not true."""
        each = self._asked[number]
        note = self._view.ask.judge(worker, each.condition) if each.condition else ""
        if note is None:
            return None
        text = self._text(worker, each.expression) if each.expression else ""
        return Passage(number, worker.count, worker.look().lane, note, text)

    def _text(self, worker: EngineProcess, expression: str) -> str:
        try:
            result = self._view.ask.evaluate_at(worker, expression)
        except AskFailed as error:
            return f"<{error.reason}>"
        if result.error is not None:
            return f"<{result.error}>"
        return result.output + (result.value.text if result.value is not None else "")

    def _breaks(self, stop_at: int) -> tuple[Break, ...]:
        return tuple(replace(each.place, stop_at=stop_at) for each in self._asked)


def _query(asked: Sequence[Asked]) -> EvaluatePassages | None:
    """Return the query of what can be evaluated in the process; None: something cannot."""
    found = []
    for each in asked:
        pair = [guarded(source) if source else "" for source in (each.condition, each.expression)]
        if None in pair:
            return None
        found.append((pair[0] or "", pair[1] or ""))
    return EvaluatePassages(tuple(found))


@contextmanager
def _process_at(view: ReplayView, count: int) -> Iterator[EngineProcess]:
    worker = view.travel.at(count)
    try:
        yield worker
    finally:
        worker.kill()
