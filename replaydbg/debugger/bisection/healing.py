"""Searches that distinguish violations that healed from those that lasted, with a check at every line."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace

from replaydbg.bisect.search import Answer
from replaydbg.debugger.bisection.bisect_results import Bisected
from replaydbg.debugger.bisection.culprits import Culprits
from replaydbg.debugger.bisection.violations import MOST_HEALED, Disturbed, Violation, Violations
from replaydbg.engine.reports import Changes
from replaydbg.events.verdict import Verdict

_CUT = (
    f"Only the first {MOST_HEALED:,} violations were examined, so another one may have lasted to "
    "the end of its call: --only-at PLACE leaves fewer."
)


class Healing(Culprits):
    """The part of a search that distinguishes violations that healed from those that lasted."""

    _first: int
    """Between which counts of lines it is searched."""
    _last: int

    @abstractmethod
    def _nothing(self) -> Bisected:
        """Return a result in which nothing was found yet."""

    @abstractmethod
    def _of_history(self) -> Bisected:
        """Answer from the recording's index."""

    @abstractmethod
    def _why_never(self) -> str:
        """Return why it cannot be decided at the end; empty: it was good."""

    @abstractmethod
    def _changes_between_places(self) -> Iterator[tuple[int, int, Changes | None]]:
        """Yield the changes between two checkpoints, in order; None: asking has changed the program there."""

    def lasting(self) -> Bisected:
        """Find the first violation that is not healed before its call, or the search, ends; if each is, the first one.

        An invariant over two values is broken while they are changed: what is good again in the same call was met in
        the middle of something.
        """
        if self._predicate.is_of_history:
            return self._of_history()
        try:
            found = self._violations().up_to_a_lasting_one()
            by_number = self._by_number(self._violations()) if found.is_cut else None
        except Disturbed:
            return self.scan()
        if by_number is not None and by_number.culprit is not None:
            return replace(by_number, note=_CUT)
        result = replace(self._nothing(), is_exact=True)
        if found.is_cut:
            result = replace(result, note=_CUT)
        if found.lasting is None and not found.healed:
            return replace(result, answer=Answer.NEVER, last_reason=self._why_never())
        seen = found.lasting.seen if found.lasting is not None else found.healed[0].seen
        if not self._is_confirmed(seen) and seen > self._first:
            return self.scan()
        if found.lasting is None:
            first = found.healed[0]
            passing = (by_number.passing if by_number is not None else len(found.healed)) - 1
            result = replace(result, passing=passing, healed=self._healed_at(first.healed))
            return replace(self._with_culprit(result, seen, since=self._first), healed=result.healed)
        if found.healed:
            first_passing = self._view.index.moment(self._line_that_broke(found.healed[0].seen, self._first))
            first_healed = self._healed_at(found.healed[0].healed)
            result = replace(result, passing=len(found.healed), first_passing=first_passing, first_healed=first_healed)
        since = found.healed[-1].healed if found.healed else self._first
        return self._with_culprit(result, seen, since=since)

    def _with_culprit(self, result: Bisected, seen: int, *, since: int) -> Bisected:
        """Add the line that did what was seen at a line, later than `since`, where it was not so yet."""
        if seen <= self._first:
            return replace(result, answer=Answer.ALWAYS)
        inner = self._everywhere(since, seen)
        culprit = inner.permanent().culprit if inner is not None else self._culprit(seen)
        moment = self._view.index.moment(seen) if inner is not None else None
        return replace(result, answer=Answer.FOUND, culprit=culprit or self._culprit(seen), seen_at=moment)

    def _with_healing(self, result: Bisected, seen: int, *, is_first: bool) -> Bisected:
        """Add the culprit, and whether what it broke was good again in the same call."""
        if self._predicate.only_at is not None:
            found = self._with_culprit(result, seen, since=self._first)
        else:
            found = replace(result, culprit=self._culprit(seen, is_first=is_first))
        try:
            violation = Violations(self._view, self._predicate, seen, self._last).first()
        except Disturbed:
            return found
        is_healed = violation is not None and violation.is_healed
        return replace(found, healed=self._healed_at(violation.healed)) if is_healed and violation else found

    def permanent(self) -> Bisected:
        """Ask at every line for the last one after which it was bad: it stays so to the end, and may have been before.

        Where the question disturbs the program, it is what `scan` finds.
        """
        if self._predicate.is_of_history:
            return self._of_history()
        if self._predicate.only_at is not None or self._ask(self._last)[0] is not Verdict.BAD:
            return self._permanent_in_order()
        number, first, last = 0, 0, 0
        for _, _, changes in self._changes_between_places():
            if changes is None:
                return self.scan()
            if changes.count:
                number, first, last = number + changes.count, first or changes.first_written, changes.last_seen
        if number and not self._is_confirmed(last):
            return self.scan()
        result = replace(self._nothing(), is_exact=True)
        if not number:
            return replace(result, answer=Answer.ALWAYS)
        found = replace(result, answer=Answer.FOUND, culprit=self._culprit(last))
        return self._with_passing(found, number, first)

    def _permanent_in_order(self) -> Bisected:
        """Do the same in one process: at the end there is nothing to ask, and the last answer there was holds."""
        try:
            if not self._predicate.frame:
                return self._by_number(self._violations())
            followed = self._violations().all()
            return self._by_number(self._violations()) if followed.is_cut else self._last_lasting(followed.healed)
        except Disturbed:
            return self.scan()

    def _violations(self) -> Violations:
        return Violations(self._view, self._predicate, self._first, self._last)

    def _by_number(self, violations: Violations) -> Bisected:
        """Find the last violation, if it was not healed, by how often it changed. Raises Disturbed."""
        changes, was_bad = violations.changes()
        result = replace(self._nothing(), is_exact=True)
        is_bad = was_bad is not (changes.count % 2 == 1)
        if is_bad and not changes.count:
            return replace(result, answer=Answer.ALWAYS)
        if not is_bad:
            healed = (changes.count + 1) // 2
            if not healed:
                return replace(result, answer=Answer.NEVER, last_reason=self._why_never())
            last = self._healed_at(changes.last_seen)
            return replace(result, answer=Answer.NEVER, passing=healed, last_healed=last)
        if not self._is_confirmed(changes.last_seen):
            raise Disturbed
        if changes.count > 2 or (changes.count > 1 and was_bad):
            result = self._with_passing(result, changes.count + was_bad, changes.first_written)
        return self._with_culprit(result, changes.last_seen, since=self._first)

    def _last_lasting(self, violations: Sequence[Violation]) -> Bisected:
        """Return the last of the violations of a function that lasted to the end of its call."""
        result = replace(self._nothing(), is_exact=True)
        lasting = [at for at, each in enumerate(violations) if not each.is_healed]
        if not lasting:
            if not violations:
                return replace(result, answer=Answer.NEVER, last_reason=self._why_never())
            last_healed = self._healed_at(violations[-1].healed)
            return replace(result, answer=Answer.NEVER, passing=len(violations), last_healed=last_healed)
        at = lasting[-1]
        seen = violations[at].seen
        if seen > self._first and not self._is_confirmed(seen):
            return self.scan()
        if at:
            first_passing = self._view.index.moment(self._line_that_broke(violations[0].seen, self._first))
            healed = self._healed_at(violations[0].healed) if violations[0].is_healed else None
            result = replace(result, passing=at, first_passing=first_passing, first_healed=healed)
        return self._with_culprit(result, seen, since=violations[at - 1].healed if at else self._first)

    def _with_passing(self, result: Bisected, changes: int, first: int) -> Bisected:
        """Add how often it was bad for a while, given the number of changes from good, and since which line."""
        passing = (changes - 1) // 2
        if not passing:
            return replace(result, passing=0, first_passing=None)
        try:
            # From the line that broke it on: it is good before that.
            violation = Violations(self._view, self._predicate, first, self._last).first()
        except Disturbed:
            violation = None
        healed = self._healed_at(violation.healed) if violation is not None and violation.is_healed else None
        return replace(result, passing=passing, first_passing=self._view.index.moment(first), first_healed=healed)
