"""Files that a program has mapped into its memory are mapped again when it is resumed, with what it stored there."""

import struct
import sys
from pathlib import Path

import pytest

from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from tests.harness import tool
from tests.harness.waiting import wait_until
from tests.resume.going_on import KILLED, assert_goes_on, record_in, resume_in, run_in

pytestmark = pytest.mark.slow

_PROGRAM = """
import mmap, os, struct

with open("counter", "wb") as file:
    file.write(bytes(3 * mmap.PAGESIZE))
with open("counter", "r+b") as file:
    shared = mmap.mmap(file.fileno(), mmap.PAGESIZE, offset=mmap.PAGESIZE)
    private = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    read = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
for number in range(1, 9):
    struct.pack_into("q", shared, 8, number)
    struct.pack_into("q", private, 8, 100 + number)
    os.stat(".")
os.utime("counter")
with open("counter", "rb") as file:
    file.seek(mmap.PAGESIZE + 8)
    print(struct.unpack("q", file.read(8)), struct.unpack_from("q", private, 8), private.size())
print(struct.unpack_from("q", read, mmap.PAGESIZE + 8), struct.unpack_from("q", shared, 8))
shared.close(), private.close(), read.close()
"""


def test_mapped_files_have_what_was_stored(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_PROGRAM)

    assert_goes_on(tmp_path, 10)


def test_stores_after_the_last_event_are_those_of_the_program(tmp_path: Path) -> None:
    """A replay makes all stores up to the next call, also those that came after the last event."""
    (tmp_path / "program.py").write_text(_PROGRAM)
    record_in(tmp_path, "whole")
    with open_recording(tmp_path / "whole.rdbg") as recording:
        (touched,) = [each.number for each in recording.events(gate="posix.utime") if isinstance(each, Event)]
    assert record_in(tmp_path, "killed", killed_at=touched - 1).status in KILLED
    data = bytearray((tmp_path / "counter").read_bytes())
    assert struct.unpack_from("q", data, 4096 + 8) == (8,)

    resumed = resume_in(tmp_path, "killed")

    assert resumed.stdout.startswith(b"(8,) (108,)"), resumed


def test_a_file_that_is_shorter_than_its_map_is_refused(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_PROGRAM)
    record_in(tmp_path, "whole")
    with open_recording(tmp_path / "whole.rdbg") as recording:
        (touched,) = [each.number for each in recording.events(gate="posix.utime") if isinstance(each, Event)]
    assert record_in(tmp_path, "killed", killed_at=touched - 1).status in KILLED
    (tmp_path / "counter").write_bytes(b"short")

    refused = resume_in(tmp_path, "killed")

    assert refused.status == 2
    assert b"counter" in refused.stderr


_SHARED = """
import _posixshmem, os
from multiprocessing import resource_tracker, shared_memory

block = shared_memory.SharedMemory(f"replaydbg-{os.getpid()}", create=True, size=4096)
resource_tracker.unregister(block._name, "shared_memory")  # it would remove the block when the program is killed
block.buf[:5] = b"hello"
os.utime(".")
print(bytes(block.buf[:5]))
_posixshmem.shm_unlink(block._name)
block.close()
"""


def test_shared_memory_that_is_still_there_is_mapped_again(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_SHARED)
    record_in(tmp_path, "whole")
    with open_recording(tmp_path / "whole.rdbg") as recording:
        (touched,) = [each.number for each in recording.events(gate="posix.utime") if isinstance(each, Event)]
    assert record_in(tmp_path, "killed", killed_at=touched).status in KILLED

    resumed = resume_in(tmp_path, "killed")

    assert (resumed.status, resumed.stdout) == (0, b"b'hello'\n"), resumed


_RESIZED = """
import mmap, os
with open("counter", "w+b") as file:
    file.truncate(mmap.PAGESIZE)
    shared = mmap.mmap(file.fileno(), 0)
{other}
os.utime("counter")
shared.resize(2 * mmap.PAGESIZE)
shared[mmap.PAGESIZE : mmap.PAGESIZE + 2] = b"ab"
os.utime(".")
print(shared[mmap.PAGESIZE : mmap.PAGESIZE + 2], os.path.getsize("counter"))
"""


def _killed_at(folder: Path, program: str, which: int) -> None:
    """Record a program, and kill it after its first (0) or second call of `os.utime`."""
    (folder / "program.py").write_text(program)
    record_in(folder, "whole")
    with open_recording(folder / "whole.rdbg") as recording:
        touched = [each.number for each in recording.events(gate="posix.utime") if isinstance(each, Event)]
    assert record_in(folder, "killed", killed_at=touched[which]).status in KILLED


def test_a_map_that_was_resized_is_mapped_again(tmp_path: Path) -> None:
    _killed_at(tmp_path, _RESIZED.format(other=""), 1)

    planned, resumed = resume_in(tmp_path, "killed", "--plan"), resume_in(tmp_path, "killed")

    assert b"counter, 8,192 bytes from byte 0" in planned.stdout
    assert (resumed.status, resumed.stdout) == (0, b"b'ab' 8192\n"), resumed


def test_a_resize_in_flight_explains_the_size_of_the_file(tmp_path: Path) -> None:
    _killed_at(tmp_path, _RESIZED.format(other=""), 0)
    (tmp_path / "counter").write_bytes(bytes(8192))

    resumed = resume_in(tmp_path, "killed")

    assert (resumed.status, resumed.stdout) == (0, b"b'ab' 8192\n"), resumed


def test_one_of_several_maps_that_was_resized_is_refused(tmp_path: Path) -> None:
    other = 'other = open("other", "w+b"); other.truncate(4096); second = mmap.mmap(other.fileno(), 0)'
    _killed_at(tmp_path, _RESIZED.format(other=other), 1)

    refused = resume_in(tmp_path, "killed")

    assert refused.status == 2
    message = "a map was resized while several were there, and the log does not show which one"
    assert message in refused.stderr.decode()


# Python's resource tracker removes the memory when the program is killed.
_TRACKED = """
import _posixshmem, os
from multiprocessing import shared_memory

block = shared_memory.SharedMemory(create=True, size=10_000)
print(block.name, flush=True)
block.buf[:5] = b"hello"
block.buf[9_000:9_003] = b"end"
{then}
os.utime(".")
other = shared_memory.SharedMemory(block.name)
print(bytes(other.buf[:5]), bytes(other.buf[9_000:9_003]))
block.unlink()
"""


def _killed_and_removed(folder: Path, then: str = "") -> Path:
    """Record the program, kill it, and wait until its shared memory is gone; return the path of that."""
    (folder / "program.py").write_text(_TRACKED.format(then=then))
    recorded = record_in(folder, "killed", killed_at=_number_of_utime(folder))
    assert recorded.status in KILLED
    path = Path("/dev/shm") / recorded.stdout.decode().strip()
    wait_until(lambda: not path.exists())
    return path


def _number_of_utime(folder: Path) -> int:
    record_in(folder, "whole")
    with open_recording(folder / "whole.rdbg") as recording:
        (touched,) = [each.number for each in recording.events(gate="posix.utime") if isinstance(each, Event)]
    return touched


def test_shared_memory_that_was_removed_is_made_again(tmp_path: Path) -> None:
    path = _killed_and_removed(tmp_path)

    plan = resume_in(tmp_path, "killed", "--plan")
    is_made_by_plan = path.exists()
    resumed = resume_in(tmp_path, "killed")
    replayed = run_in(tmp_path, tool.replay(sys.executable, tmp_path / "killed-on.rdbg"))

    assert b"is made again from the program's map; other processes do not share that" in plan.stdout
    assert not is_made_by_plan
    assert (resumed.status, resumed.stdout) == (0, b"b'hello' b'end'\n"), resumed
    assert replayed.status == 0, replayed
    assert not path.exists()


def test_removed_memory_that_is_no_longer_mapped_is_refused(tmp_path: Path) -> None:
    path = _killed_and_removed(tmp_path, "block._buf.release(); block._mmap.close()")

    refused = resume_in(tmp_path, "killed")

    assert refused.status == 2
    assert b"the shared memory /" + path.name.encode() + b" is gone" in refused.stderr
    assert not path.exists()
