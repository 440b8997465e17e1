"""Looks at moments: what a predicate says there, asked in throw-away copies of the program's process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace

from replaydbg.bisect.verdict import Verdict
from replaydbg.debugger.bisection.bisect_results import Probe
from replaydbg.debugger.bisection.predicates import Predicate
from replaydbg.debugger.bisection.verdict_answers import is_disturbed, verdict_of
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.engine.messages import Frame, Judged, Where
from replaydbg.engine.worker import EngineProcess
from replaydbg.errors import AskFailed, EngineLost

LONGEST_PROBE = 5.0
"""Seconds that a look may take; then it is undecided."""


class Probes:
    """The looks that are made for a search, and their answers."""

    def __init__(self, view: ReplayView, predicate: Predicate, tell: Callable[[Probe], None] | None) -> None:
        """`tell` is given each look as it is made."""
        self._view, self._predicate = view, predicate
        self._tell = tell
        self._looks: list[Probe] = []

    def _look(self, counts: Sequence[int]) -> list[Verdict]:
        """Look at several moments at once."""
        view, verdicts = self._view, []
        with ExitStack() as stack:
            asked = []
            for count in counts:
                worker = view.travel.at(count)
                stack.callback(worker.kill)
                began = time.monotonic()
                asked.append((count, began, stack.enter_context(closing(worker.begin_to_ask(self._question())))))
            for count, began, asking in asked:
                view.work.idle()
                try:
                    verdict, said = verdict_of(asking.value(LONGEST_PROBE, view.work.idle))
                except AskFailed as error:
                    verdict, said = Verdict.UNDECIDED, error.reason
                verdicts.append(verdict)
                self._note(count, verdict, said, time.monotonic() - began)
        return verdicts

    def _note(self, count: int, verdict: Verdict, said: str, seconds: float) -> None:
        self._looks.append(Probe(count, self._view.index.moment(count), verdict, said, seconds, is_check=False))
        if self._tell is not None:
            self._tell(self._looks[-1])

    def _ask(self, count: int) -> tuple[Verdict, str]:
        """Look at one moment."""
        with self._standing_at(count) as worker:
            try:
                return verdict_of(worker.ask(self._question(), seconds=LONGEST_PROBE, idle=self._view.work.idle))
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
                question = self._predicate.question("value_of_part") | {"source": source}
                with suppress(AskFailed):
                    value = worker.ask(question, seconds=left, idle=self._view.work.idle)
                    if isinstance(value, str):
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
        """Whether copies that nobody has asked agree: bad from `seen` on, up to `until` if it stayed so, not before."""
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
        """Return the call that a question is about at a line, if it waited before that and was not found meanwhile.

        It was one of several that waited, or waited as nothing does that is known of: which one it was shows when it
        goes on, and others ran after its own last line.
        """
        wanted = self._predicate.frame
        stack = self._view.look_at(seen).stack if wanted else ()
        call = next((each for each in stack if wanted in (each.function, each.name)), None)
        has_waited = call is not None and 0 < call.before < seen - 1
        return call if has_waited and self._is_call_missing(seen - 1) else None

    def _is_call_missing(self, count: int) -> bool:
        found = Probes(self._view, replace(self._predicate, kind="check", source="True"), None)
        return found._ask(count)[0] is Verdict.UNDECIDED

    def _question(self) -> dict[str, object]:
        return self._predicate.question("judged")

    def _judged(self, *, stops: bool = False, looks_at_returns: bool = False, finds: str = "") -> Judged:
        return Judged({**self._predicate.question("judging"), "finds": finds}, stops, looks_at_returns)

    def _is_so(self, where: Where, *, is_bad: bool) -> bool:
        """Whether a process that nobody has asked says the same where one stands that has been asked all along."""
        verdict = self._ask(where.count)[0]
        is_same = verdict is Verdict.UNDECIDED or (verdict is Verdict.BAD) is is_bad
        return is_same and (where.changes.count > 0 or not is_disturbed(self._view, where))
