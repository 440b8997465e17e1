"""Replay the recordings of a session's failing tests together: one replay passes all, as all are prefixes of one log.

It is tried without the tests that passed; recordings that differ then are replayed once more with all tests.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from replaydbg.classes import dataclass
from replaydbg.debugger import Session
from replaydbg.debugger.first_pass.recorded_test import test_in
from replaydbg.errors import ReplaydbgError
from replaydbg.heap.storage.recorded_snapshots import load_stored, stored_snapshots
from replaydbg.log.reader import open_recording
from replaydbg.pytest_plugin.examination.hidden_dependencies import other_values
from replaydbg.pytest_plugin.examination.minimize import KeptFailure, SessionLog, SmallerLog, SmallerPart
from replaydbg.pytest_plugin.shared.results import Examination
from replaydbg.replay.launcher import replay

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


@dataclass(frozen=True, slots=True)
class _Agreement:
    """How far a replay agreed with its recording."""

    events: int
    """Up to this number of events."""
    reason: str
    """Where it differed; empty: it did not."""


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
                agreement = _agreement(session, target, whole.events)
                while self._left:
                    kept = self._left[0]
                    part = smaller.part(kept)
                    if part is not None and part.events <= agreement.events:
                        yield from self._agreed(session, smaller, part)
                        continue
                    # What pytest does to report a failure depends on what it has in memory.
                    part = smaller.part(kept, until_failure=True)
                    if part is not None and part.events <= agreement.events and _fails(session, part):
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
        _turn(session, part.end)
        found = Examination(verified=True, verification="")
        if part.is_smaller:
            other = _other_values(session, kept, part)
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
        try:
            with Session(last.path, keeps_index=False) as session:
                agreement = _agreement(session, last.path, last.events)
                while differing:
                    each = differing[0]
                    is_reached = each.kept.failed <= agreement.events
                    if is_reached:
                        _turn(session, each.kept.end.raw)
                    differing.pop(0)
                    yield Replayed(each.kept, _verified(each, agreement), session if is_reached else None)
        except ReplaydbgError as error:
            agreement = _replayed(last.path, last.events) if differing else _Agreement(0, "")
            for each in differing:
                yield Replayed(each.kept, replace(_verified(each, agreement), problem=str(error)), None)


def _verified(each: _Differing, agreement: _Agreement) -> Examination:
    agrees = each.kept.events <= agreement.events
    return Examination(verified=agrees, verification="" if agrees else agreement.reason, leftovers=each.leftovers)


def _turn(session: Session, end: Mapping[str, Any]) -> None:
    """Go to the failure of a test, given the end of its recording."""
    test = test_in(end)
    if test is not None and test != session.test:
        session.turn_to(test)


def _fails(session: Session, part: SmallerPart) -> bool:
    """Whether the test fails in the replay: a recording that ends there has no later events to compare."""
    _turn(session, part.end)
    # If its exception was not raised, a session is at the line that failed in the recording.
    return session.failure is not None and session.failure in session.index.raised


def _other_values(session: Session, kept: KeptFailure, part: SmallerPart) -> str | None:
    """Return the values that differ from the time of the failure.

    None: there is none. Empty: this cannot be determined.
    """
    try:
        with open_recording(kept.path) as recording:
            found = [each for each in stored_snapshots(recording) if kept.failed and each.event == kept.failed]
            if not found:
                return ""  # for instance a failure without an exception: then leave nothing out, and report nothing
            picture = load_stored(recording, found[-1].number)
        return "; ".join(other_values(session, picture, part.failed, kept.path)) or None
    except ReplaydbgError:
        return ""


def _agreement(session: Session, path: Path, events: int) -> _Agreement:
    """Return how far the replay of an open session agreed with its recording, which has so many events."""
    if session.has_diverged:
        found = _replayed(path, events)  # it has the reason in the words that users know from `replaydbg replay`
        reached = min(found.events, session.index.events)
        return _Agreement(reached, found.reason or session.index.ended)
    return _reached(session.index.events, events)


def _replayed(path: Path, events: int) -> _Agreement:
    """Replay a recording without counting lines."""
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        result = replay(path, stdout=null, stderr=null)
    except ReplaydbgError as error:
        return _Agreement(0, str(error))
    finally:
        os.close(null)
    if result.divergence is not None:
        return _Agreement(result.events, str(result.divergence).partition("\n")[0])
    return _reached(result.events, events)


def _reached(reached: int, events: int) -> _Agreement:
    return _Agreement(reached, "" if reached >= events else f"it ended after {reached:,} of {events:,} events")
