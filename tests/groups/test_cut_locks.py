"""Cuts contain what released a lock of a file, or wrote an eventfd, before another process acquired or read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from replaydbg.cli.main import main
from replaydbg.events.records import Event
from replaydbg.groups.group_cuts import GroupCuts
from replaydbg.groups.group_ends import require_ends
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.log.reader import open_recording
from replaydbg.store.directory import member_path
from tests.harness.children import PROGRAMS
from tests.harness.recorded_group import record_program

pytestmark = pytest.mark.slow

UNRELEASED = """\
import os
from fcntl import LOCK_EX, LOCK_SH, LOCK_UN, flock, lockf
ready, go = os.pipe()
first = os.open("lock", os.O_RDWR | os.O_CREAT)
second = os.dup(first)
if os.fork() == 0:
    own = open("lock", "r+")
    HOLD
    os.write(go, b"1")
    AFTERWARDS
    os.getpid()
    os._exit(0)
os.read(ready, 1)
os.close(first)
os.close(second)
file = open("lock", "r+")
FUNCTION(file, LOCK_EX)
os.wait()
"""

EVENTFD = """\
import os
event, done = os.eventfd(0), os.eventfd(0, os.EFD_NONBLOCK)
if os.fork() == 0:
    WRITE
    os._exit(0)
READ
try:
    os.eventfd_read(done)  # another one, and nothing is there
except BlockingIOError:
    pass
os.wait()
"""

LOCK = """\
import fcntl, os, struct
path = "lock"
ready, go = os.pipe()
file = open(path, "w")
if os.fork() == 0:
    own = open(path, "r+")
    fcntl.flock(own, fcntl.LOCK_EX)
    os.write(go, b"1")
    RELEASE
    os.getpid()
    os._exit(0)
os.read(ready, 1)
fcntl.flock(file, fcntl.LOCK_EX)
os.wait()
"""

SHARED = """\
import fcntl, os
ready, go = os.pipe()
if os.fork() == 0:
    own = open("lock", "w")
    fcntl.flock(own, fcntl.LOCK_EX)
    os.write(go, b"1")
    fcntl.flock(own, fcntl.LOCK_SH)  # from now on others can share it
    fcntl.flock(own, fcntl.LOCK_UN)
    os._exit(0)
os.read(ready, 1)
file = open("lock", "r+")
fcntl.flock(file, fcntl.LOCK_SH)
fcntl.flock(file, fcntl.LOCK_EX)
os.wait()
"""


def numbers(group: Path, process: int, gate: str) -> list[int]:
    """Return the events of a kind after the fork, in order."""
    with open_recording(member_path(group, process)) as recording:
        events = [each for each in recording.events() if isinstance(each, Event)]
    fork = max(each.number for each in events if each.gate == "posix.fork") if process > 1 else 0
    return [each.number for each in events if each.gate.endswith(gate) and each.number > fork]


def requires(group: Path, acquired: int, released: int) -> bool:
    """Whether the event `acquired` of process 1 needs the event `released` of process 2, and no later one."""
    cuts = GroupCuts(OpenedGroup(group))
    assert require_ends(cuts) == ""
    finder = cuts.finder
    assert finder.latest({1: acquired})[1] == acquired
    without, with_it = (finder.latest({1: acquired, 2: position})[1] for position in (released - 1, released))
    return without == acquired - 1 and with_it == acquired


USES = {
    "eventfd_write": ("os.eventfd_write(event, 5)", "os.eventfd_read(event)", "eventfd_write", "eventfd_read"),
    "write": ("os.write(event, (3).to_bytes(8, 'little'))", "os.read(event, 8)", "posix.write", "posix.read"),
    "file": (
        "open(event, 'wb', buffering=0).write((3).to_bytes(8, 'little'))",
        "open(event, 'rb', buffering=0).read(8)",
        "FileIO.write",
        "FileIO.read",
    ),
}


@pytest.mark.parametrize("kind", USES)
def test_an_eventfd_is_read_after_it_was_written(tmp_path: Path, kind: str) -> None:
    write, read, writes, reads = USES[kind]
    group = record_program(tmp_path, EVENTFD.replace("WRITE", write).replace("READ", read))

    assert requires(group, numbers(group, 1, reads)[0], numbers(group, 2, writes)[0])


RELEASES = {
    "unlock": ("fcntl.flock(own, fcntl.LOCK_UN)", "fcntl.flock"),
    "close": ("own.close()", "FileIO.close"),
    "close of its number": ("os.close(own.fileno())", "posix.close"),
    "dup2": ("os.dup2(0, own.fileno())", "dup2"),
    "closerange": ("os.closerange(own.fileno(), own.fileno() + 1)", "posix.closerange"),
    "end": ("pass", ""),
}


@pytest.mark.parametrize("kind", RELEASES)
@pytest.mark.parametrize("function", ["flock", "lockf", "fcntl"])
def test_a_lock_is_acquired_after_it_was_released(tmp_path: Path, kind: str, function: str) -> None:
    release, gate = RELEASES[kind]
    source = LOCK.replace("RELEASE", release)
    if function == "lockf":
        source = source.replace("flock(", "lockf(")
        gate = gate.replace("flock", "lockf")
    elif function == "fcntl":
        whole = "fcntl.fcntl({}, fcntl.F_SETLKW, struct.pack('hhqqi4x', fcntl.{}, 0, 0, 0, 0))"
        for operation, kind in (("EX", "F_WRLCK"), ("UN", "F_UNLCK")):
            for name in ("own", "file"):
                source = source.replace(f"fcntl.flock({name}, fcntl.LOCK_{operation})", whole.format(name, kind))
        gate = gate.replace("flock", "fcntl")
    group = record_program(tmp_path, source)

    name = {"flock": "fcntl.flock", "lockf": "fcntl.lockf", "fcntl": "fcntl.fcntl"}[function]
    released = numbers(group, 2, gate)[-1] if gate else GroupCuts(OpenedGroup(group)).finder.last[2]
    assert requires(group, numbers(group, 1, name)[-1], released)


@pytest.mark.parametrize(("function", "gate"), [("flock", "posix.close"), ("lockf", "FileIO.close")])
def test_a_copy_keeps_the_lock_of_a_file_and_not_that_of_a_process(tmp_path: Path, function: str, gate: str) -> None:
    closes = "copy = os.dup(own.fileno()); own.close(); os.close(copy)"
    group = record_program(tmp_path, LOCK.replace("RELEASE", closes).replace("flock(", f"{function}("))

    assert requires(group, numbers(group, 1, f"fcntl.{function}")[-1], numbers(group, 2, gate)[-1])


def test_a_shared_lock_needs_only_the_release_of_an_exclusive_one(tmp_path: Path) -> None:
    group = record_program(tmp_path, SHARED)
    shared, exclusive = numbers(group, 1, "fcntl.flock")
    _, converted, unlocked = numbers(group, 2, "fcntl.flock")

    assert requires(group, shared, converted)
    assert requires(group, exclusive, unlocked)


def test_the_order_is_certain_if_locks_come_in_turn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    group = record_program(tmp_path, LOCK.replace("RELEASE", "fcntl.flock(own, fcntl.LOCK_UN)"))
    released, acquired = numbers(group, 2, "fcntl.flock")[-1], numbers(group, 1, "fcntl.flock")[-1]
    status = main(["order", str(group), f"1@{acquired}", f"2@{released}"])

    assert (status, capsys.readouterr().out.split()[1:3]) == (0, ["came", "after"])


CLOSED = "os.close(first); os.close(second)"
ENDS = {
    "copied before it was locked": ("flock(first, LOCK_EX)", CLOSED, "close"),
    "locked by a copy": ("flock(second, LOCK_EX); os.close(second)", "os.close(first)", "close"),
    "closed by the end": ("flock(first, LOCK_EX)", "os.close(first)", ""),
    "one of two released": (
        "more = open('lock', 'r+'); flock(own, LOCK_SH); flock(more, LOCK_SH)",
        "flock(own, LOCK_UN)",
        "",
    ),
    "a part released": ("lockf(own, LOCK_EX)", "lockf(own, LOCK_UN, 10)", ""),
    "one of two parts released": ("lockf(own, LOCK_EX, 5); lockf(own, LOCK_EX, 5, 20)", "lockf(own, LOCK_UN, 5)", ""),
    "others closed": ("lockf(own, LOCK_EX)", "os.closerange(900, 910)", ""),
    "closed with others": ("lockf(own, LOCK_EX)", "os.closerange(own.fileno(), 900)", "closerange"),
}
"""What acquires the lock, what the process does afterwards, and the call that ends the lock; empty: its end does."""


@pytest.mark.parametrize("kind", ENDS)
def test_a_lock_that_nobody_released_has_ended(tmp_path: Path, kind: str) -> None:
    hold, afterwards, gate = ENDS[kind]
    function = hold.partition("(")[0] if "flock" not in hold else "flock"
    source = UNRELEASED.replace("HOLD", hold).replace("AFTERWARDS", afterwards).replace("FUNCTION", function)
    group = record_program(tmp_path, source)

    released = numbers(group, 2, gate)[-1] if gate else GroupCuts(OpenedGroup(group)).finder.last[2]
    assert requires(group, numbers(group, 1, f"fcntl.{function}")[-1], released)


STARTED = """\
import fcntl, os, subprocess, sys
if len(sys.argv) > 1:
    os.read(0, 1)
    os.getpid()
    sys.exit()
file = os.open("lock", os.O_RDWR | os.O_CREAT)
fcntl.flock(file, fcntl.LOCK_EX)
child = subprocess.Popen([sys.executable, __file__, "child"], stdin=subprocess.PIPE, pass_fds=[file])
os.close(file)
child.stdin.close()
fcntl.flock(os.open("lock", os.O_RDWR), fcntl.LOCK_EX)
child.wait()
"""


def test_a_started_program_keeps_the_lock_of_a_file(tmp_path: Path) -> None:
    group = record_program(tmp_path, STARTED, options=PROGRAMS)

    last = GroupCuts(OpenedGroup(group)).finder.last[2]
    assert requires(group, numbers(group, 1, "fcntl.flock")[-1], last)


def test_an_order_by_such_an_end_is_not_certain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hold, afterwards, _ = ENDS["copied before it was locked"]
    source = UNRELEASED.replace("HOLD", hold).replace("AFTERWARDS", afterwards).replace("FUNCTION", "flock")
    group = record_program(tmp_path, source)
    closed, acquired = numbers(group, 2, "close")[-1], numbers(group, 1, "fcntl.flock")[-1]

    assert main(["order", str(group), f"1@{acquired}", f"2@{closed}"]) == 3
    assert "may be concurrent" in capsys.readouterr().out
