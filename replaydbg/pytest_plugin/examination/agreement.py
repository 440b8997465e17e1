"""How far the replay of a session agrees with its recording, and whether a test fails in it as it was recorded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from replaydbg.classes import dataclass
from replaydbg.debugger import Session
from replaydbg.debugger.first_pass.recorded_test import test_in
from replaydbg.errors import ReplaydbgError
from replaydbg.heap.storage.recorded_snapshots import load_stored, stored_snapshots
from replaydbg.log.reader import open_recording
from replaydbg.pytest_plugin.examination.hidden_dependencies import other_values
from replaydbg.pytest_plugin.examination.minimize import KeptFailure, SmallerPart
from replaydbg.replay.launcher import replay


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far a replay agreed with its recording."""

    events: int
    """Up to this number of events."""
    reason: str
    """Where it differed; empty: it did not."""


def turn_to_test(session: Session, end: Mapping[str, Any]) -> None:
    """Go to the failure of a test, given the end of its recording."""
    test = test_in(end)
    if test is not None and test != session.test:
        session.turn_to(test)


def fails(session: Session, part: SmallerPart) -> bool:
    """Whether the test fails in the replay: a recording that ends there has no later events to compare."""
    turn_to_test(session, part.end)
    # If its exception was not raised, a session is at the line that failed in the recording.
    return session.failure is not None and session.failure in session.index.raised


def values_that_differ(session: Session, kept: KeptFailure, part: SmallerPart) -> str | None:
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


def agreement_of(session: Session, path: Path, events: int) -> Agreement:
    """Return how far the replay of an open session agreed with its recording, which has so many events."""
    if session.has_diverged:
        found = replayed(path, events)  # it has the reason in the words that users know from `replaydbg replay`
        reached = min(found.events, session.index.events)
        return Agreement(reached, found.reason or session.index.ended)
    return _reached(session.index.events, events)


def replayed(path: Path, events: int) -> Agreement:
    """Replay a recording without counting lines."""
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        result = replay(path, stdout=null, stderr=null)
    except ReplaydbgError as error:
        return Agreement(0, str(error))
    finally:
        os.close(null)
    if result.divergence is not None:
        return Agreement(result.events, str(result.divergence).partition("\n")[0])
    return _reached(result.events, events)


def _reached(reached: int, events: int) -> Agreement:
    return Agreement(reached, "" if reached >= events else f"it ended after {reached:,} of {events:,} events")
