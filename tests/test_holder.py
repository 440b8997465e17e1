"""Checkpoints that are made while a program is recorded, and held until the debugger comes."""

import os
import sys
import time
from pathlib import Path

from replaydbg.debugger import Session
from replaydbg.engine.holder import take_over
from tests.harness import tool
from tests.harness.process import run
from tests.harness.surroundings import without_steering

TRAVEL = Path(__file__).parents[1] / "fixtures" / "travel"


def record(program: Path, folder: Path, *options: str) -> Path:
    recording = folder / f"{program.stem}.rdbg"
    command = tool.record(sys.executable, recording, [str(program)], ("--keep-checkpoints", *options))
    recorded = run(command, cwd=folder, env=without_steering(os.environ), timeout=60)
    assert recorded.status == 1, recorded.stderr
    return recording


def held(recording: Path) -> Session:
    """Opens it as soon as its checkpoints are held; they are a moment after the recording has been sealed."""
    for _ in range(200):
        session = Session(recording)
        if session.was_held:
            return session
        session.close()
        time.sleep(0.05)
    raise AssertionError("nobody held its checkpoints")


def test_what_is_held_is_what_a_pass_of_its_own_finds(tmp_path: Path) -> None:
    for name in ("ends_by_an_exception.py", "changed_while_it_waits.py", "threads_while_recording.py"):
        recording = record(TRAVEL / name, tmp_path)
        with held(recording) as session:
            index, here = session.index, session.here
            session.reverse_step()
            assert session.seek(here.moment).count == here.count
        with Session(recording) as again:
            assert not again.was_held
            assert (again.index.digest, again.index.total) == (index.digest, index.total)
            assert again.here.stack == here.stack


def test_addresses_are_equal_in_what_is_held(tmp_path: Path) -> None:
    with held(record(TRAVEL / "threads_while_recording.py", tmp_path)) as session:
        session.seek("@exc")
        told = session.why("results")
        assert (told.function, told.line) == ("work", 9)
        assert session.why("largest.total").function == "work"


def test_nothing_is_held_for_a_recording_without(tmp_path: Path) -> None:
    assert take_over(tmp_path / "none.rdbg") is None
