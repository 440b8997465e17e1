"""`resume --set`: one answer of the past is another one, and the program goes on live right after it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from tests.harness import tool
from tests.resume.going_on import record_in, resume_in, run_in

pytestmark = pytest.mark.slow
_PROGRAM = """
import os, time
first = os.read(os.open("input", os.O_RDONLY), 100)
buffer = bytearray(8)
with open("input", "rb", buffering=0) as file:
    count = file.readinto(buffer)
when = time.time()
with open("out.txt", "a") as out:
    print(first, bytes(buffer[:count]), when, file=out)
print(first, bytes(buffer[:count]), when)
"""


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    (tmp_path / "input").write_bytes(b"abc")
    (tmp_path / "program.py").write_text(_PROGRAM)
    assert record_in(tmp_path, "whole").status == 0
    (tmp_path / "out.txt").unlink()
    return tmp_path


def last_event(folder: Path, gate: str) -> int:
    """Return the number of the program's last call of a gate."""
    with open_recording(folder / "whole.rdbg") as recording:
        return [each.number for each in recording.events(gate=gate, controls=False) if isinstance(each, Event)][-1]


@pytest.mark.parametrize(
    ("gate", "value", "printed"),
    [
        ("posix.read", "b'longer than before'", "b'longer than before' b'abc' "),
        ("posix.read", "b''", "b'' b'abc' "),
        ("_io.FileIO.readinto", "b'xy'", "b'abc' b'xy' "),
        ("time.time", "12.5", "b'abc' b'abc' 12.5"),
    ],
)
def test_the_program_goes_on_with_another_answer(recorded: Path, gate: str, value: str, printed: str) -> None:
    event = last_event(recorded, gate)
    before = (recorded / "whole.rdbg").read_bytes()

    resumed = resume_in(recorded, "whole", "--set", f"event {event} = {value}")

    assert resumed.status == 0, resumed
    assert resumed.stdout.decode().startswith(printed), resumed
    assert (recorded / "out.txt").read_bytes() == resumed.stdout  # it ran live, and once
    assert (recorded / "whole.rdbg").read_bytes() == before
    replayed = run_in(recorded, tool.replay(sys.executable, recorded / "whole-on.rdbg"))
    assert (replayed.status, replayed.stdout) == (0, resumed.stdout), replayed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["event {read} = 5"], "is posix.read, which returned bytes: VALUE must be that, too (got int)"),
        (["event {read} = TimeoutError()"], "resume --set takes a value; to raise an exception"),
        (["event {open} = 5"], "is posix.open, whose result is more than a value"),
        (["event {read} = open('x')"], "--set takes a literal such as b'abc' or 12.5 (got"),
        (["limit = 3"], "--set must be 'event N = VALUE' (got 'limit = 3')"),
        (["event " + 5000 * "9" + " = 5"], "--set must be 'event N = VALUE'"),
        (["event {read} = b'x'", "--set", "event 3 = 5"], "argument --set: can be given only once"),
        (["event 99999 = 5"], "No such moment '99999': the recording has"),
        (["event 0 = 5"], "No such moment '0'"),
        (["event {read} = b''", "--at", "3"], "--set cannot be used with --at"),
        (["event {read} = b''", "--follow"], "--set cannot be used with --follow"),
    ],
)
def test_what_cannot_be_changed_is_refused(recorded: Path, words: list[str], said: str) -> None:
    numbers = {"read": last_event(recorded, "posix.read"), "open": last_event(recorded, "posix.open")}
    text, *more = words

    refused = resume_in(recorded, "whole", "--set", text.format(**numbers), *more)

    assert refused.status == 2, refused
    assert said in refused.stderr.decode()
    assert not (recorded / "whole-on.rdbg").exists() and not (recorded / "out.txt").exists()


def test_a_durable_recording_is_refused(recorded: Path) -> None:
    command = tool.record(sys.executable, recorded / "durable.rdbg", ["program.py"], options=["--durable"])
    assert run_in(recorded, command).status == 0

    refused = resume_in(recorded, "durable", "--set", "event 60 = b''")

    assert refused.status == 2 and "was made with --durable" in refused.stderr.decode(), refused
