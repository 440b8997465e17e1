"""Probes: the verdicts of a predicate at moments, from throw-away copies of the program's process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace

from replaydbg.debugger.bisection.bisect_results import Probe
from replaydbg.debugger.bisection.predicates import Predicate
from replaydbg.debugger.bisection.verdict_answers import is_disturbed
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.protocol import Judged
from replaydbg.engine.queries import GetPartValue, GetVerdict, JudgeEachLine
from replaydbg.engine.reports import Frame, Where
from replaydbg.errors import AskFailed, EngineLost
from replaydbg.events.verdict import Verdict

LONGEST_PROBE = 5.0
"""Seconds that a probe may take; after that it is undecided."""


class Probes:
    """The probes of a search and their verdicts."""

    def __init__(self, view: ReplayView, predicate: Predicate, report: Callable[[Probe], None] | None) -> None:
        """`report` receives each probe as it is made."""
        self._view, self._predicate = view, predicate
        self._report = report
        self._looks: list[Probe] = []

    def _probe(self, counts: Sequence[int]) -> list[Verdict]:
        """Look at several moments at once."""
        view, verdicts = self._view, []
        with ExitStack() as stack:
            asked = []
            for count in counts:
                worker = view.travel.at(count)
                stack.callback(worker.kill)
                began = time.monotonic()
                asked.append((count, began, stack.enter_context(closing(worker.begin_to_ask(self._query())))))
            for count, began, asking in asked:
                view.work.idle()
                try:
                    verdict, reason = asking.value(LONGEST_PROBE, view.work.idle)
                except AskFailed as error:
                    verdict, reason = Verdict.UNDECIDED, error.reason
                verdicts.append(verdict)
                self._note(count, verdict, reason, time.monotonic() - began)
        return verdicts

    def _note(self, count: int, verdict: Verdict, reason: str, seconds: float) -> None:
        self._looks.append(Probe(count, self._view.index.moment(count), verdict, reason, seconds, is_check=False))
        if self._report is not None:
            self._report(self._looks[-1])

    def _ask(self, count: int) -> tuple[Verdict, str]:
        """Look at one moment."""
        with self._standing_at(count) as worker:
            try:
                return worker.ask(self._query(), seconds=LONGEST_PROBE, idle=self._view.work.idle)
            except AskFailed as error:
                return Verdict.UNDECIDED, error.reason

    def _values_at(self, count: int) -> dict[str, str]:
        """Return the values of the expression's parts at one moment, as text; those that are not there are missing.

        Each is asked in a copy of its own: what the question, or another part, changes there it has not changed here.
        """
        values = {}
        until = time.monotonic() + LONGEST_PROBE
        with self._standing_at(count) as worker:
            for source in self._predicate.parts:
                left = until - time.monotonic()
                if left <= 0:
                    break
                query = self._predicate.query(GetPartValue, source=source)
                with suppress(AskFailed):
                    value = worker.ask(query, seconds=left, idle=self._view.work.idle)
                    if value is not None:
                        values[source] = value
        return values

    @contextmanager
    def _standing_at(self, count: int) -> Iterator[EngineProcess]:
        worker = self._view.travel.at(count)
        try:
            yield worker
        finally:
            worker.kill()

    def _is_confirmed(self, seen: int, until: int = 0) -> bool:
        """Whether fresh copies agree: bad from `seen`, up to `until` if it stayed so, and not before."""
        stayed = [seen + (until - seen) * part // 4 for part in (1, 2, 3) if until > seen]
        is_bad = all(self._ask(count)[0] is Verdict.BAD for count in (seen, *stayed))
        return is_bad and self._ask(max(seen - 1, 1))[0] is not Verdict.BAD

    def _written(self, seen: int) -> int:
        """Return the line that ran when it became what it is seen to be at `seen`; see watch.c."""
        try:
            close = self._view.travel.look_closely(seen, self._judged(stops=True, looks_at_returns=True))
        except EngineLost:
            return max(seen - 1, 1)
        return close.changes.first_written if close.changes.count else max(seen - 1, 1)

    def _lost_call(self, seen: int) -> Frame | None:
        """Return the call that the predicate is about at a line, if it was suspended before and not found meanwhile.

        It was one of several suspended calls, or suspended in an unknown way: it is identified when it continues, after
        other calls ran.
        """
        wanted = self._predicate.frame
        stack = self._view.look_at(seen).stack if wanted else ()
        call = next((each for each in stack if wanted in (each.function, each.name)), None)
        has_waited = call is not None and 0 < call.before < seen - 1
        return call if has_waited and self._is_call_missing(seen - 1) else None

    def _is_call_missing(self, count: int) -> bool:
        found = Probes(self._view, replace(self._predicate, kind="check", source="True"), None)
        return found._ask(count)[0] is Verdict.UNDECIDED

    def _query(self) -> GetVerdict:
        return self._predicate.query(GetVerdict)

    def _judged(self, *, stops: bool = False, looks_at_returns: bool = False, finds: str = "") -> Judged:
        return Judged(self._predicate.query(JudgeEachLine, finds=finds), stops, looks_at_returns)

    def _is_so(self, where: Where, *, is_bad: bool) -> bool:
        """Whether a fresh process gives the same verdict as one that evaluated the predicate at every line."""
        verdict = self._ask(where.count)[0]
        is_same = verdict is Verdict.UNDECIDED or (verdict is Verdict.BAD) is is_bad
        return is_same and (where.changes.count > 0 or not is_disturbed(self._view, where))
