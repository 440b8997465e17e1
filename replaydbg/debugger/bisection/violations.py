"""Violations of an invariant in order: where each was seen, and whether it healed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from replaydbg.classes import dataclass
from replaydbg.debugger.bisection.predicates import OnlyAt, Predicate
from replaydbg.debugger.bisection.probes import Probes
from replaydbg.debugger.bisection.verdict_answers import in_time, is_disturbed
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.engine.protocol import RunOrder
from replaydbg.engine.reports import Changes, EndReport, Where
from replaydbg.errors import EngineLost, UsageError
from replaydbg.events.verdict import Verdict

MOST_HEALED = 2_000
"""Violations that are followed one by one, at some 2 ms each; after that, only changes are counted."""

CHECKED = 500
"""The number of violations after which to check that the program follows the recorded path."""


class Disturbed(Exception):
    """Asking has changed the program."""


class Violation(NamedTuple):
    """A stretch of the run in which something was bad."""

    seen: int
    """The count of the first line before which it was."""
    healed: int
    """The count of the first line before which it was good again; 0: it was not."""
    is_healed: bool
    """Whether it was good again in the same call; else its call, or the search, ended first."""


@dataclass(frozen=True, slots=True)
class Followed:
    """The violations up to the first that was not healed."""

    healed: tuple[Violation, ...]
    """Those before it."""
    lasting: Violation | None
    """None: there is none."""
    is_cut: bool = False
    """Whether there were too many to follow all of them."""


class Violations(Probes):
    """Follows a predicate over a part of the run."""

    def __init__(self, view: ReplayView, predicate: Predicate, first: int, last: int) -> None:
        """Begin before one line, and go up to another one, both by their counts."""
        super().__init__(view, predicate, None)
        self._first, self._last = first, last

    def up_to_a_lasting_one(self) -> Followed:
        """Return the violations up to the first that is not healed. Raises Disturbed."""
        healed: list[Violation] = []
        for each in self:
            if not each.is_healed:
                return Followed(tuple(healed), each)
            healed.append(each)
            if len(healed) == MOST_HEALED:
                return Followed(tuple(healed), None, is_cut=True)
        return Followed(tuple(healed), None)

    def all(self) -> Followed:
        """Return all of them, whether healed or not, as `healed`. Raises Disturbed."""
        found = tuple(islice(self, MOST_HEALED + 1))
        return Followed(found[:MOST_HEALED], None, is_cut=len(found) > MOST_HEALED)

    def first(self) -> Violation | None:
        """Return the first one; None: there is none. Raises Disturbed."""
        return next(iter(self), None)

    def changes(self) -> tuple[Changes, bool]:
        """Return how often it changed, and whether it was bad at first. Raises Disturbed."""
        was_bad = self._ask(self._first)[0] is Verdict.BAD
        worker = self._view.travel.at(self._first)
        try:
            order = RunOrder(until=self._last, watch=self._judged())
            where = worker.run(order, idle=in_time(self._view, self._first, self._last))
        except EngineLost:
            raise Disturbed from None
        finally:
            worker.kill()
        if isinstance(where, EndReport) or is_disturbed(self._view, where):
            raise Disturbed
        return where.changes, was_bad

    def __iter__(self) -> Iterator[Violation]:
        is_bad = self._ask(self._first)[0] is Verdict.BAD
        seen, call = self._first, self._call_at(self._view.look_at(self._first)) if is_bad else 0
        number = 0
        worker = self._view.travel.at(self._first)
        order = RunOrder(until=self._last, watch=self._judged(stops=True))
        try:
            while True:
                where = worker.run(order, idle=in_time(self._view, self._first, self._last))
                if isinstance(where, EndReport):
                    raise Disturbed
                if not where.changes.count:
                    self._is_undisturbed(where)
                    break
                is_bad = not is_bad
                if is_bad:
                    seen, call = where.count, self._call_at(where)
                else:
                    number += 1
                    if number % CHECKED == 0:
                        self._is_undisturbed(where)
                    yield Violation(seen, where.count, is_healed=self._is_healed(seen, call, where))
        except EngineLost:
            raise Disturbed from None
        finally:
            worker.kill()
        if is_bad:
            yield Violation(seen, 0, is_healed=False)

    def _is_undisturbed(self, where: Where) -> None:
        if is_disturbed(self._view, where):
            raise Disturbed

    def _is_healed(self, seen: int, call: int, where: Where) -> bool:
        """Whether what was bad in a call is good again in the same one."""
        now = self._call_at(where)
        if now and call:
            return now == call
        if not now and not call:
            return True
        # It waits on no stack that runs, here or there: then the one call that is known is asked for there.
        known = Probes(self._view, replace(self._predicate, started=now or call), None)
        verdict = known._ask(seen if now else where.count)[0]
        return verdict is (Verdict.BAD if now else Verdict.GOOD)

    def _call_at(self, where: Where) -> int:
        """Return the call of the function; 0: there is only one, or it is not on the running stack."""
        wanted = self._predicate.frame
        call = next((each for each in where.stack if wanted in (each.function, each.name)), None) if wanted else None
        return call.started if call is not None else 0


def at_place(predicate: Predicate, view: ReplayView, place: str) -> Predicate:
    """Return a predicate that is evaluated at FILE:LINE, or at the first line of FUNCTION or FILE:FUNCTION, only.

    Raises UsageError if no such line, and no such function, ran.
    """
    if predicate.is_of_history:
        raise UsageError("--only-at needs an expression, a function or an invariant, not output or an exception.")
    head, colon, tail = place.rpartition(":")
    file = view.sources.file_named(head) if colon else ""
    if tail.isdecimal():
        if not file:
            raise UsageError(f"--only-at {place}: FILE:LINE expected.")
        if int(tail) not in view.index.lines_hit(file):
            raise UsageError(f"--only-at {place}: line {tail} of {file} never ran.")
        return replace(predicate, only_at=OnlyAt(file, int(tail), ""))
    ran = {each.function for each in view.index.hits if not file or each.file == file}
    if not any(tail in (each, each.rpartition(".")[2]) for each in ran):
        raise UsageError(f"--only-at {place}: no function {tail!r} ran there (FILE:LINE or FUNCTION expected).")
    return replace(predicate, only_at=OnlyAt(file, 0, tail))
