"""A resumed program holds the file locks that it held: `flock`, and record locks, which belong to a process."""

import fcntl
import os
from pathlib import Path

import pytest

from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from replaydbg.resources.follow import resources_at
from tests.resume.going_on import KILLED, assert_goes_on, record_in, resume_in

pytestmark = pytest.mark.slow

_PROGRAM = """
import fcntl, os, struct

class Own:
    def __init__(self, name):
        self.file = open(name, "wb")
    def fileno(self):
        return self.file.fileno()

def is_held(call, *args):
    try:
        call(*args)
    except (BlockingIOError, PermissionError):
        return True
    return False

def record(kind, start, length):
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, start, length, 0)

ranges = open("ranges", "w+b", buffering=0)
other = open("ranges", "r+b", buffering=0)
fcntl.lockf(ranges, fcntl.LOCK_EX, 10, 20)
fcntl.fcntl(ranges, fcntl.F_SETLK, record(fcntl.F_RDLCK, 50, 0))
text = open("text", "w")
fcntl.flock(text, fcntl.LOCK_EX)
released = open("released", "w")
fcntl.flock(released, fcntl.LOCK_EX)
fcntl.flock(released, fcntl.LOCK_UN)
own = Own("own")
fcntl.flock(own, fcntl.LOCK_EX)
fcntl.flock(own, fcntl.LOCK_UN)
for _ in range(8):
    os.stat(".")
OFD = fcntl.F_OFD_SETLK
print(is_held(fcntl.fcntl, other, OFD, record(fcntl.F_RDLCK, 29, 1)),
      is_held(fcntl.fcntl, other, OFD, record(fcntl.F_RDLCK, 30, 1)),
      is_held(fcntl.fcntl, other, OFD, record(fcntl.F_RDLCK, 70, 1)),
      is_held(fcntl.fcntl, other, OFD, record(fcntl.F_WRLCK, 70, 1)),
      *(is_held(fcntl.flock, open(name, "rb"), fcntl.LOCK_EX | fcntl.LOCK_NB) for name in ("text", "released", "own")))
"""


def _killed(folder: Path) -> None:
    """Record the program, killed while it holds its locks."""
    (folder / "program.py").write_text(_PROGRAM)
    record_in(folder, "whole")
    with open_recording(folder / "whole.rdbg") as recording:
        events = [each for each in recording.events(gate="posix.stat") if isinstance(each, Event)]
    mark = next(each.number for each in events if each.arguments == (".",))
    assert record_in(folder, "killed", killed_at=mark).status in KILLED


def test_locks_are_held_again(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_PROGRAM)

    assert_goes_on(tmp_path, 8)


def test_a_lock_by_a_file_object_is_among_the_resources(tmp_path: Path) -> None:
    _killed(tmp_path)

    with open_recording(tmp_path / "killed.rdbg") as recording:
        found = resources_at(recording)

    kinds = [(Path(str(each.path)).name, each.kind, each.start, each.length) for each in found.locks]
    assert sorted(kinds) == [("ranges", "lockf", 20, 10), ("ranges", "lockf", 50, 0), ("text", "flock", 0, 0)]


@pytest.mark.parametrize("name", ["ranges", "text"])
def test_a_lock_that_another_process_holds_is_named(tmp_path: Path, name: str) -> None:
    _killed(tmp_path)

    with (tmp_path / name).open("r+b") as file:
        if name == "ranges":
            fcntl.lockf(file, fcntl.LOCK_EX, 1, 25)
        else:
            fcntl.flock(file, fcntl.LOCK_EX)
        planned = resume_in(tmp_path, "killed", "--plan")
        refused = resume_in(tmp_path, "killed")

    holder = f"process {os.getpid()}" if name == "ranges" else "another process"
    (row,) = [line for line in planned.stdout.decode().splitlines() if "holds it" in line]
    assert row.strip().removeprefix("refused").strip().startswith("locks: ") and row.endswith(f": {holder} holds it")
    assert "  refused  " in planned.stdout.decode()
    assert refused.status == 2
    assert f"{holder} holds it" in refused.stderr.decode()
    assert str(tmp_path / name) in refused.stderr.decode()
    assert not (tmp_path / "killed-on.rdbg").exists()
