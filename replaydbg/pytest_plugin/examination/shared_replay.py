"""Replay the recordings of a session's failing tests together: one replay passes all, as all are prefixes of one log.

It is tried without the tests that passed; recordings that differ then are replayed once more with all tests.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace

from replaydbg.classes import dataclass
from replaydbg.debugger import Session
from replaydbg.errors import ReplaydbgError
from replaydbg.pytest_plugin.examination.agreement import (
    Agreement,
    agreement_of,
    fails,
    replayed,
    turn_to_test,
    values_that_differ,
)
from replaydbg.pytest_plugin.examination.left_behind import left_behind
from replaydbg.pytest_plugin.examination.minimize import KeptFailure, SessionLog, SmallerLog, SmallerPart
from replaydbg.pytest_plugin.shared.results import Examination

_MOST_TRIES = 3
"""Maximum number of smaller logs that are replayed: each leaves out the test that differed in the one before."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a replay for one recording."""

    kept: KeptFailure
    """The recording."""
    found: Examination
    """Whether it agreed, and what was left out."""
    session: Session | None
    """An open session at the test's failure, until the next result is requested; None: there is none."""


@dataclass(frozen=True, slots=True)
class _Differing:
    """A recording that needs the tests before it."""

    kept: KeptFailure
    leftovers: str
    """Where a replay without them differed; empty: none was made, or this cannot be determined."""


class SharedReplay:
    """The replays of a session's recordings."""

    def __init__(self) -> None:
        self._left: list[KeptFailure] = []
        """Recordings without a result, in the order of their tests."""
        self._differing: list[_Differing] = []

    def replays(self, kept: Sequence[KeptFailure]) -> Iterator[Replayed]:
        """Yield a result for each recording, and make it smaller if a replay agrees without other tests."""
        self._left = sorted(kept, key=lambda each: each.log)
        try:
            yield from self._without_others()
            reason = ""
        except (ReplaydbgError, OSError) as error:
            reason = str(error)
        self._differing += [_Differing(each, reason) for each in self._left]
        if self._differing:
            yield from self._with_others(sorted(self._differing, key=lambda each: each.kept.log))

    # ---- without the tests that passed ----

    def _without_others(self) -> Iterator[Replayed]:
        log = SessionLog(self._left[-1].path) if self._left else None
        differing: set[int] = set()
        for _ in range(_MOST_TRIES):
            smaller = log.without_others(self._left, differing) if log is not None else None
            if log is None or smaller is None:
                return
            first = yield from self._try(smaller)
            if first is None:
                return
            differing.add(log.number_of(first))

    def _try(self, smaller: SmallerLog) -> Generator[Replayed, None, KeptFailure | None]:
        """Yield results of those that agree; return the first one that differed, None if none did."""
        last = self._left[-1]
        target = last.path.with_name(f"alone-{last.path.name}")
        try:
            whole = smaller.part(last)
            assert whole is not None, "it ends where the recording does"
            smaller.write(whole, last, target)
            with Session(target, keeps_index=False) as session:
                agreement = agreement_of(session, target, whole.events)
                while self._left:
                    kept = self._left[0]
                    part = smaller.part(kept)
                    if part is not None and part.events <= agreement.events:
                        yield from self._agreed(session, smaller, part)
                        continue
                    # What pytest does to report a failure depends on what it has in memory.
                    part = smaller.part(kept, until_failure=True)
                    if part is not None and part.events <= agreement.events and fails(session, part):
                        yield from self._agreed(session, smaller, part)
                    else:
                        self._differing.append(_Differing(self._left.pop(0), agreement.reason))
                    return kept
        finally:
            target.unlink(missing_ok=True)
        return None

    def _agreed(self, session: Session, smaller: SmallerLog, part: SmallerPart) -> Iterator[Replayed]:
        """Make the first recording smaller, unless a value differs although the replay agreed."""
        kept = self._left[0]
        turn_to_test(session, part.end)
        found = Examination(verified=True, verification="")
        if part.is_smaller:
            other = values_that_differ(session, kept, part)
            if other is not None:
                self._differing.append(_Differing(self._left.pop(0), other))
                return
            size = smaller.write(part, kept, kept.path)
            found = replace(found, left_out=part.left_out, events=part.events, size=size)
        self._left.pop(0)
        yield Replayed(kept, found, session)

    # ---- with all tests ----

    def _with_others(self, differing: list[_Differing]) -> Iterator[Replayed]:
        last = differing[-1].kept
        depending: list[_Differing] = []
        try:
            with Session(last.path, keeps_index=False) as session:
                agreement = agreement_of(session, last.path, last.events)
                while differing:
                    each = differing[0]
                    is_reached = each.kept.failed <= agreement.events
                    if is_reached:
                        turn_to_test(session, each.kept.end.raw)
                    differing.pop(0)
                    yield Replayed(each.kept, _verified(each, agreement), session if is_reached else None)
                    depending += [each] if is_reached and each.leftovers else []
                # The others wait for none of these: each takes many replays.
                for each in depending:
                    turn_to_test(session, each.kept.end.raw)
                    yield from (Replayed(each.kept, found, None) for found in left_behind(each.kept, session))
        except ReplaydbgError as error:
            agreement = replayed(last.path, last.events) if differing else Agreement(0, "")
            for each in differing:
                yield Replayed(each.kept, replace(_verified(each, agreement), problem=str(error)), None)


def _verified(each: _Differing, agreement: Agreement) -> Examination:
    agrees = each.kept.events <= agreement.events
    return Examination(verified=agrees, verification="" if agrees else agreement.reason, leftovers=each.leftovers)
