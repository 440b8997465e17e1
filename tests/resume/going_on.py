"""Kill a program after several of its events, resume it, and compare it with one that was not killed."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from tests.harness import tool
from tests.harness.process import Finished, run
from tests.harness.surroundings import without_steering

TIMEOUT = 60.0
KILLED = (-9, 137)
"""How a program that was killed ends: by itself, or as its recorder reports it."""


def run_in(folder: Path, words: Sequence[str], killed_at: int = 0) -> Finished:
    """Run a command in `folder`, with a store of its own; what it records is killed after the event `killed_at`."""
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(folder / "store")}
    if killed_at:
        env["REPLAYDBG_TEST_KILLED_AT"] = str(killed_at)
    return run(list(words), cwd=folder, env=env, timeout=TIMEOUT)


def record_in(folder: Path, name: str, killed_at: int = 0) -> Finished:
    """Record `program.py` of `folder` as `name`."""
    return run_in(folder, tool.record(sys.executable, folder / f"{name}.rdbg", ["program.py"]), killed_at)


def resume_in(folder: Path, name: str, *more: str) -> Finished:
    """Run the recording `name` on into `NAME-on`."""
    words = [sys.executable, "-m", "replaydbg", "resume", "-q", "--in-flight=repeat", *more]
    return run_in(folder, [*words, "-o", f"{name}-on.rdbg", f"{name}.rdbg"])


def own_events(recording: Path) -> list[int]:
    """Return the numbers of the events from the first one on that the program itself made."""
    with open_recording(recording) as opened:
        events = [each for each in opened.events() if isinstance(each, Event)]
    first = next(each.number for each in events if "program.py" in str(each.site))
    return list(range(first, events[-1].number))


def assert_goes_on(folder: Path, points: int) -> None:
    """Assert that `program.py` ends alike when it is killed and resumed, after `points` of its events."""
    whole = record_in(folder, "whole")
    events = own_events(folder / "whole.rdbg")

    for event in events[:: max(1, len(events) // points)][:points]:
        killed = record_in(folder, f"{event}", killed_at=event)
        assert killed.status in KILLED, (event, killed)
        resumed = resume_in(folder, f"{event}")
        replayed = run_in(folder, tool.replay(sys.executable, folder / f"{event}-on.rdbg"))

        assert killed.stdout + resumed.stdout == whole.stdout, (event, resumed.stderr)
        assert resumed.status % 256 == whole.status % 256, (event, resumed.stderr)
        assert (replayed.stdout, replayed.status) == (whole.stdout, resumed.status), (event, replayed.stderr)
