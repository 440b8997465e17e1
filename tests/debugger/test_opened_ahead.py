"""A session that opens before the run has been repeated: the same answers, and what is found out at the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import zstandard

from replaydbg.debugger import Session
from replaydbg.debugger.first_pass import first_pass, run_index
from replaydbg.debugger.session_results import Here, WorkProgress
from replaydbg.engine.engine_process import EngineProcess
from replaydbg.engine.travel import Travel
from replaydbg.errors import Cancelled, EngineLost
from replaydbg.log.coding.decode import Cursor
from replaydbg.log.coding.encode import encode_value
from replaydbg.store.directory import index_path
from tests.harness import tool
from tests.harness.recording import record_file
from tests.harness.typed import Typed

PROGRAM = """\
import sys


def caught(number):
    try:
        return 1 // (number % 3)
    except ZeroDivisionError:
        return 0


def main(rounds):
    total = 0
    for number in range(rounds):
        total += caught(number)
    print(total, file=sys.stderr)
    raise RuntimeError(f"after {rounds}")


main(ROUNDS)
"""


def recorded(folder: Path, rounds: int) -> Path:
    folder.mkdir()
    program = folder / "rounds.py"
    program.write_text(PROGRAM.replace("ROUNDS", str(rounds)))
    return record_file(program, folder, status=1)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = recorded(tmp_path_factory.mktemp("ahead") / "long", 60_000)
    Session(path, spacing=0.001).close()
    return path


@pytest.fixture(autouse=True)
def _any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_pass, "LONG", 0)


class Gate:
    """Holds the first pass after its third checkpoint until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opens = threading.Event()
        self.is_held = threading.Event()
        kept = Travel._keeping

        def keeping(travel: Travel, runner: EngineProcess) -> Callable[[EngineProcess], None]:
            keep = kept(travel, runner)
            left = 0

            def held(checkpoint: EngineProcess) -> None:
                nonlocal left
                keep(checkpoint)
                left += 1
                if left == 3 and runner is travel.root:
                    self.is_held.set()
                    assert self.opens.wait(60)

            return held

        monkeypatch.setattr(Travel, "_keeping", keeping)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate(monkeypatch)
    yield gate
    gate.opens.set()


def answers(session: Session) -> dict[str, object]:
    """Return answers of every kind, the first ones at the position at which the session opened."""
    found: dict[str, object] = {
        "here": session.here,
        "stack": list(session.ask.stack()),
        "failure": session.failure,
        "total": session.ask.evaluate("total", 0),
        "why": session.run.why("total", 0),
    }
    for moment in ("20%", "70%", "@end", "@exc"):
        found[moment] = session.seek(moment)
    found["back"] = session.reverse_next()
    found["raised"], found["output"] = session.index.raised, session.index.output
    found["digest"] = (session.index.total, session.index.digest, session.is_repeated, session.has_diverged)
    return found


def test_the_answers_are_those_after_the_whole_pass(recording: Path) -> None:
    with Session(recording, spacing=0.001) as plain:
        expected = answers(plain)
    with Session(recording, spacing=0.001, ahead=True) as ahead:
        found = answers(ahead)
        assert len(ahead.checkpoints()) > 3
        assert ahead.take_notice() == ""

    assert found == expected


def test_it_opens_and_answers_while_the_pass_is_held(recording: Path, gate: Gate) -> None:
    with Session(recording, spacing=0.001, ahead=True) as session:
        assert gate.is_held.wait(60)
        opened, frames = session.here, list(session.ask.stack())
        early = session.travel.timeline.counts()[1]
        assert session.seek(early).count == early
        assert not session.travel.is_passed
        gate.opens.set()
        assert session.seek("@exc").count == opened.count
        assert list(session.ask.stack()) == frames

    assert opened.message == "RuntimeError: after 60000"
    assert [each.function for each in frames] == ["main", "<module>"]


def test_waiting_for_the_pass_can_be_cancelled(recording: Path, gate: Gate) -> None:
    session: Session

    def progress(_: WorkProgress) -> None:
        if gate.is_held.is_set() and not gate.opens.is_set():
            session.work.cancel()

    with Session(recording, spacing=0.001, ahead=True, progress=progress) as session:
        assert gate.is_held.wait(60)
        opened = session.here
        with pytest.raises(Cancelled):
            session.seek("90%")
        assert session.here == opened
        gate.opens.set()
        assert session.seek("90%").percent == pytest.approx(90, abs=1)


def test_it_can_be_closed_while_the_pass_goes_on(recording: Path) -> None:
    session = Session(recording, ahead=True)
    keeper = session.travel.keeper
    session.close()
    session.close()

    assert not any(each.name == "replaydbg-first-pass" for each in threading.enumerate())
    with pytest.raises(ProcessLookupError):
        os.kill(keeper, 0)


def test_a_pass_that_is_killed_is_reported(recording: Path, gate: Gate) -> None:
    with Session(recording, spacing=0.001, ahead=True) as session:
        assert gate.is_held.wait(60)
        os.kill(session.travel.root.pid, signal.SIGKILL)
        gate.opens.set()
        with pytest.raises(EngineLost):
            session.await_pass()


def index_of(recording: Path) -> list[Any]:
    plain = run_index._plain(index_path(recording).read_bytes())
    value: Any = Cursor(plain, ()).value()
    return list(value)


def write_index(recording: Path, value: list[Any]) -> None:
    packed = zstandard.compress(encode_value([run_index._key(recording), *value[1:]]))
    index_path(recording).write_bytes(run_index.MAGIC + packed)


@pytest.fixture
def misled(tmp_path: Path) -> tuple[Path, Here]:
    """Return a recording with the index of another program's run, and the position at which it really opens."""
    path, other = recorded(tmp_path / "one", 300), recorded(tmp_path / "other", 400)
    Session(other).close()
    with Session(path) as plain:
        here = plain.here
    write_index(path, index_of(other))
    return path, here


def test_an_index_of_another_run_is_found_out(misled: tuple[Path, Here]) -> None:
    path, here = misled
    with Session(path, ahead=True) as session:
        assert session.here.message == "RuntimeError: after 400"
        session.await_pass()

        assert session.here == here
        assert not session.is_repeated
        assert "may be wrong" in session.take_notice()
        assert session.take_notice() == ""
        value = session.ask.evaluate("rounds", 0).value
        assert value is not None
        assert value.text == "300"


def test_the_first_question_is_answered_in_this_run(misled: tuple[Path, Here]) -> None:
    path, here = misled
    with Session(path, ahead=True) as session:
        value = session.ask.evaluate("rounds", 0).value

        assert value is not None
        assert value.text == "300"
        assert session.here == here
        assert session.failure is not None
        assert session.failure.text == "RuntimeError: after 300"


def test_the_prompt_reports_it(misled: tuple[Path, Here]) -> None:
    path, _ = misled
    with Session(path, ahead=True) as session:
        typed = Typed(session)
        shown = typed("info recording", "p rounds")

    assert "What was shown before may be wrong." in shown
    assert shown.rstrip().endswith("300")


def test_a_position_that_cannot_be_read_is_not_used(misled: tuple[Path, Here]) -> None:
    path, _ = misled
    value = index_of(path)
    at = next(number for number, each in enumerate(value) if isinstance(each, bytes))
    assert run_index.load_index(path) is not None
    value[at] = value[at][:-1]
    write_index(path, value)

    assert run_index.load_index(path) is None


def test_a_live_directory_that_was_sealed_while_it_was_open_has_no_index(tmp_path: Path) -> None:
    engine: Any = SimpleNamespace(read=lambda name: b"")

    run_index.save_index(tmp_path / "run-1.rdbg-live", engine, run_index.RunEnding("", 0, is_script=True))

    assert list(tmp_path.iterdir()) == []


GROWS = """\
import sys
count = 0
for line in sys.stdin:
    count += len(line)
    print(count, flush=True)
"""


def test_a_recording_that_has_grown_is_not_compared_with_its_earlier_index(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(GROWS)
    command = tool.record(sys.executable, tmp_path / "a.rdbg", [str(program)])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        found = []
        for _ in range(3):
            process.stdin.write("text\n")
            process.stdin.flush()
            process.stdout.readline()
            with Session(next(tmp_path.glob("*-live")), ahead=True) as session:
                found.append(session.index.total)
                assert session.is_repeated and session.take_notice() == ""
        process.stdin.close()

    assert found[0] < found[1] < found[2]
