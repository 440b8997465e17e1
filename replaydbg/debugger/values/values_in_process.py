"""Values of an expression at many moments, evaluated in the process that passes them: some microseconds for each.

The expression gets guards and sees no code of the program run (see `stops.guarded_expressions`), so what is evaluated
here changes nothing. What is refused has to be evaluated in a copy of a process in which nothing was evaluated, which
takes milliseconds.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from replaydbg.debugger.bisection.verdict_answers import is_disturbed
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.stops.guarded_expressions import guarded
from replaydbg.engine.protocol import RunOrder
from replaydbg.engine.queries import EvaluateAtLines, GetModuleValue
from replaydbg.engine.reports import EndReport
from replaydbg.errors import EngineLost

FEWEST = 4
"""Values for which a process is prepared: for fewer, copies take less time."""

AT_ONCE = 250
"""Values after which a process reports what it has found."""

LONGEST = 10.0
"""Seconds that a process may take from one report to the next; then it may hang in the expression."""

MOST_REFUSED = 20
"""If more are refused, and more than were evaluated in the process, it is not tried any longer."""

Value = tuple[str, str]
"""The value's repr(), and why there is none: one of both is empty."""


class _NotInProcess(Exception):
    """The process ended, hung, refused or took another path than the recorded one: copies are to be asked."""


class ValuesInProcess:
    """Evaluates an expression before lines of a run."""

    def __init__(self, view: ReplayView, query: GetModuleValue) -> None:
        """`query`: the one that copies answer."""
        self._view, self._query = view, query
        source = guarded(query.source)
        self._guarded = EvaluateAtLines(source, query.module) if source is not None else None
        """None: copies are asked."""
        self._refused = self._evaluated = 0

    def of(self, counts: Sequence[int]) -> dict[int, Value]:
        """Return the values before those of the lines, ascending, at which they were found without changing anything.

        Raises Cancelled and EngineLost.
        """
        found: dict[int, Value] = {}
        for stretch in self._stretches(counts):
            if self._guarded is None:
                break
            if len(stretch) < FEWEST:
                continue
            try:
                found |= self._between(self._guarded, stretch)
            except _NotInProcess:
                self._guarded = None
        return found

    def _stretches(self, counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Yield lines that one run passes. It goes on past one checkpoint; if there are several, another begins."""
        checkpoints = self._view.travel.timeline.counts()
        begin = 0
        for end, (before, count) in enumerate(pairwise(counts), 1):
            if bisect_right(checkpoints, count) - bisect_right(checkpoints, before) > 1:
                yield tuple(counts[begin:end])
                begin = end
        yield tuple(counts[begin:])

    def _between(self, query: EvaluateAtLines, counts: tuple[int, ...]) -> dict[int, Value]:
        view, found = self._view, dict[int, Value]()
        worker = view.travel.at(counts[0])
        try:
            left = counts
            while left:
                order = RunOrder(until=left[-1], lines=left, passages=query, most_passages=AT_ONCE)
                try:
                    where = worker.run(order, idle=self._in_time())
                except EngineLost as error:
                    raise _NotInProcess from error
                if isinstance(where, EndReport) or where.count not in left:
                    raise _NotInProcess
                for each in where.evaluated:
                    if each.count not in left:
                        raise _NotInProcess
                    if each.answer is None:
                        self._refused += 1
                        continue
                    found[each.count] = each.answer[1], each.answer[0]
                    self._evaluated += 1
                if self._refused > max(self._evaluated, MOST_REFUSED):
                    raise _NotInProcess
                left = tuple(each for each in left if each > where.count)
            if is_disturbed(view, worker.look()):
                raise _NotInProcess
        finally:
            worker.kill()
        return found

    def _in_time(self) -> Callable[[], None]:
        until = time.monotonic() + LONGEST

        def idle() -> None:
            self._view.work.idle()
            if time.monotonic() > until:
                raise _NotInProcess

        return idle
