"""The memory of all processes of a session together."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.engine import process_memory
from tests.harness.recording import record_file
from tests.harness.waiting import process_fields, wait_until

PROGRAM = Path(__file__).parents[2] / "fixtures" / "travel" / "writes_all_over_its_heap.py"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(PROGRAM, tmp_path_factory.mktemp("memory"))


def test_checkpoints_are_dropped_when_they_take_too_much(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_memory, "ALWAYS", 8 << 20)
    with Session(recording, spacing=0.01) as session:
        travel = session.travel
        standing = travel.timeline.processes()
        assert len(standing) >= 2
        # One by one, each page by its share: the decision was made by an estimate from a dozen.
        assert sum(process_memory.memory_used([pid]) for pid in standing) <= travel.memory.allowed * 1.25
        assert travel.is_limited_by == "memory"
        assert (
            f"may use {travel.memory.allowed >> 20:,} MB of memory (--memory): a seek may" in session.limitations.text
        )
        count = session.index.end // 2
        assert session.seek(count).count == count


def test_those_of_a_small_program_all_stay(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_memory, "ALWAYS", 4 << 30)
    with Session(recording, spacing=0.05) as session:
        assert session.travel.spacing == 0.05
        assert session.limitations.text == ""


def test_how_much_can_be_said(recording: Path) -> None:
    with Session(recording, spacing=0.01, memory=1 << 32) as session:
        assert session.travel.memory.allowed == 1 << 32
        assert session.limitations.text == ""
    with Session(recording, spacing=0.01, memory=20 << 20) as session:
        assert session.travel.is_limited_by == "memory"


def test_a_program_that_ends_while_checkpoints_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_memory, "ALWAYS", 1 << 20)
    monkeypatch.setattr(process_memory, "TIMES", 0.0)
    runners = []
    is_short = process_memory.MemoryLimit.is_short

    def note(limit: process_memory.MemoryLimit, runner: int, checkpoints: Sequence[int]) -> bool:
        runners.append(runner)
        return is_short(limit, runner, checkpoints)

    monkeypatch.setattr(process_memory.MemoryLimit, "is_short", note)
    monkeypatch.setattr(process_memory, "await_end", lambda processes: wait_until(lambda: has_ended(runners[-1])))
    # Long enough that a checkpoint is made on the way, even on a fast machine.
    (tmp_path / "program.py").write_text("for number in range(200_000):\n    number += 1\n")
    recording = record_file(tmp_path / "program.py", tmp_path)
    with Session(recording, spacing=0.002) as session:
        assert session.here.count == session.index.end
        assert session.travel.is_limited_by == "memory"
    assert has_ended(runners[-1])


def has_ended(pid: int) -> bool:
    try:
        return process_fields(pid)[0] in "ZX"
    except OSError:
        return True


def test_seeks_keep_to_it(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_memory, "ALWAYS", 8 << 20)
    with Session(recording, spacing=0.01) as session:
        travel = session.travel
        for share in range(5, 100, 6):
            session.seek(f"{share}%")
        taken = sum(process_memory.memory_used([pid]) for pid in travel.timeline.processes())
        # It is not measured at every checkpoint: it may exceed the limit by this much.
        assert taken <= travel.memory.allowed * 1.5


def test_processes_that_are_gone_take_nothing() -> None:
    assert process_memory.memory_used([]) == 0
    assert process_memory.memory_used([1 << 22 | 1]) == 0
