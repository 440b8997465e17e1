"""Culprits: from where a predicate is seen to be bad, or good again, to the line that ran before that."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Self

from replaydbg.debugger.bisection.bisect_results import Bisected, Culprit, Value, VerdictChange
from replaydbg.debugger.bisection.predicates import Predicate
from replaydbg.debugger.bisection.probes import Probes
from replaydbg.debugger.line_inputs import inputs_of
from replaydbg.engine.reports import Frame, Where
from replaydbg.events.verdict import Verdict


class Culprits(Probes):
    """The part of a search that finds lines, when it is known where their work was seen."""

    @abstractmethod
    def _search(self, predicate: Predicate, first: int, last: int) -> Self:
        """Return a search of the same kind for another predicate, between two counts of lines."""

    @abstractmethod
    def scan(self) -> Bisected:
        """Find the first line after which it is bad."""

    @abstractmethod
    def permanent(self) -> Bisected:
        """Find the last line after which it was bad, and stayed so."""

    @abstractmethod
    def verdict_changes(self) -> Iterator[VerdictChange]:
        """Yield every line after which it became bad, or good again."""

    def _everywhere(self, first: int, last: int) -> Self | None:
        """Return a search at every line for what is evaluated at one place only; None: it is evaluated everywhere."""
        if self._predicate.only_at is None:
            return None
        return self._search(replace(self._predicate, only_at=None), first, last)

    def _line_that_broke(self, seen: int, since: int) -> int:
        inner = self._everywhere(since, seen)
        found = inner.permanent().culprit if inner is not None else None
        return found.count if found is not None else seen - 1 if inner is not None else self._turn(seen, is_bad=True)

    def _healed_at(self, seen: int) -> VerdictChange:
        """Return the line after which it was good again, as was seen at a line."""
        count = seen if self._predicate.only_at is not None else self._turn(seen, is_bad=False)
        return self._verdict_change(count, is_bad=False)

    def _turn(self, seen: int, *, is_bad: bool) -> int:
        """Return the line that ran when it became bad, or good again."""
        lost = self._lost_call(seen)
        if lost is None:
            return self._written(seen)
        meanwhile = self._meanwhile(lost, seen)
        turns = (
            [each.count for each in meanwhile.verdict_changes() if each.is_bad is is_bad]
            if meanwhile is not None
            else []
        )
        return turns[-1] if turns else seen - 1

    def _meanwhile(self, lost: Frame, seen: int) -> Self | None:
        """Return a search in that one call's variables; None: it is not possible."""
        if self._predicate.started or not lost.started:
            return None
        meant_call = replace(self._predicate, started=lost.started)
        return self._search(meant_call, lost.before, seen)

    def _culprit(self, seen: int, *, is_first: bool = False) -> Culprit:
        lost = self._lost_call(seen)
        meanwhile = self._meanwhile(lost, seen) if lost is not None else None
        if meanwhile is not None:
            found = (meanwhile.scan() if is_first else meanwhile.permanent()).culprit
            if found is not None:
                return found
        count = self._written(seen) if lost is None else seen - 1
        verdict, reason = self._ask(count)
        before, after = self._values_at(count), self._values_at(seen)
        values = [Value(each, before.get(each, ""), after.get(each, "")) for each in {**before, **after}]
        values.sort(key=lambda each: each.before == each.after)
        before_verdict = verdict if verdict is not Verdict.BAD else Verdict.UNDECIDED
        return self._line(count, seen, before_verdict, reason, tuple(values))

    def _line(
        self,
        count: int,
        seen: int,
        before: Verdict,
        reason: str,
        values: tuple[Value, ...],
        raised: Where | None = None,
    ) -> Culprit:
        view = self._view
        stood = view.look_at(count)
        line = stood.stack[0]
        return Culprit(
            count=count,
            moment=view.index.moment(count),
            seen=seen,
            seen_moment=view.index.moment(seen),
            lane=stood.lane,
            file=line.file,
            line=line.line,
            function=line.function,
            source=view.source_line(line.file, line.line),
            before=before,
            before_reason=reason,
            values=values,
            events=inputs_of(view, count, seen, raised),
        )

    def _verdict_change(self, count: int, *, is_bad: bool) -> VerdictChange:
        line = self._view.look_at(count).stack[0]
        return VerdictChange(count, self._view.index.moment(count), is_bad, line.file, line.line, line.function)
