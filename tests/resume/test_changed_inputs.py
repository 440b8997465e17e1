"""Files that a program reads are compared with what it read last, and those that it writes with its last write."""

from pathlib import Path

import pytest

from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from tests.resume.going_on import KILLED, record_in, resume_in

pytestmark = pytest.mark.slow

_READS = """
import os
file = open("input", "rb", buffering=0)
for number in range(3):
    file.read({size})
os.utime(".")
print(len(file.read()))
"""


def killed(folder: Path, program: str) -> None:
    """Record a program, and kill it before it calls `os.utime`."""
    (folder / "program.py").write_text(program)
    record_in(folder, "whole")
    with open_recording(folder / "whole.rdbg") as recording:
        touched = next(e.number for e in recording.events(gate="posix.utime") if isinstance(e, Event))
    assert record_in(folder, "killed", killed_at=touched - 1).status in KILLED


def reader(folder: Path, size: int) -> Path:
    """Return the input of a program that was killed after three reads of it, each of so many bytes."""
    path = folder / "input"
    path.write_bytes(bytes(number % 251 for number in range(8 * size)))
    killed(folder, _READS.format(size=size))
    return path


@pytest.mark.parametrize("size", [1000, 400_000])
def test_an_input_that_is_shorter_than_what_was_read_is_refused(tmp_path: Path, size: int) -> None:
    path = reader(tmp_path, size)
    path.write_bytes(path.read_bytes()[: size + 5])

    refused = resume_in(tmp_path, "killed")

    assert refused.status == 2
    message = f"input is shorter: {size + 5:,} bytes, and the program had read {3 * size:,}"
    assert message in refused.stderr.decode()


@pytest.mark.parametrize("size", [1000, 400_000])
def test_an_input_that_was_changed_where_it_was_read_last_is_refused(tmp_path: Path, size: int) -> None:
    path = reader(tmp_path, size)
    data = bytearray(path.read_bytes())
    data[2 * size + 7] ^= 1
    path.write_bytes(data)

    refused = resume_in(tmp_path, "killed")

    assert refused.status == 2
    message = f"input has other content: bytes {2 * size:,} to {3 * size:,} are not those that the program read"
    assert message in refused.stderr.decode()


def test_an_input_that_has_only_grown_is_read_on(tmp_path: Path) -> None:
    with reader(tmp_path, 1000).open("ab") as file:
        file.write(b"more")

    resumed = resume_in(tmp_path, "killed")

    assert (resumed.status, resumed.stdout) == (0, b"5004\n"), resumed


@pytest.mark.parametrize(
    "change",
    [
        "os.truncate('input', 0)",
        "open('input', 'wb').close()",
        "open('input', 'r+b', buffering=0).write(b'other')",
        "os.pwrite(file.fileno(), b'other', 0)",
        "file.seek(0), file.write(b'other'), file.seek(3), file.truncate()",
        "map = mmap.mmap(file.fileno(), 10); map[:5] = b'other'; map.close()",
    ],
)
def test_what_the_program_changed_itself_is_no_difference(tmp_path: Path, change: str) -> None:
    (tmp_path / "input").write_bytes(b"0123456789" * 10)
    program = f"""
import mmap, os
with open("input", "wb", buffering=0) as file:
    file.write(b"0123456789" * 10)
file = open("input", "r+b", buffering=0)
file.read(10)
file.write(b"x" * 10)
file.seek(0)
file.read(20)
{change}
os.utime(".")
print("end")
"""
    killed(tmp_path, program)

    resumed = resume_in(tmp_path, "killed")

    assert (resumed.status, resumed.stdout) == (0, b"end\n"), resumed


_WRITES = """
import os
file = open("output", "w+b", buffering=0)
file.write(b"0123456789")
file.seek({offset})
fd = file.fileno()
os.utime(".")
{call}
print(os.path.getsize("output"))
"""
_IN_FLIGHT = [
    (4, "file.truncate()", b"0123"),
    (4, "file.truncate(0)", b""),
    (0, "file.truncate(20)", b"0123456789" + bytes(10)),
    (0, "os.ftruncate(fd, 3)", b"012"),
    (0, "os.truncate('output', 3)", b"012"),
    (0, "os.posix_fallocate(fd, 10, 5)", b"0123456789" + bytes(5)),
    (0, "file = open('output', 'wb')", b""),
    (0, "os.close(os.open('output', os.O_WRONLY | os.O_TRUNC))", b""),
    (0, "file.write(b'abcd')", b"abcd456789"),
    (0, "os.pwrite(fd, b'abcd', 8)", b"01234567abcd"),
]
"""The offset of a file, a call, and the content of the file once the call was made."""


def killed_before(folder: Path, offset: int, call: str) -> None:
    """Record a program, and kill it when it has called `os.utime`."""
    (folder / "program.py").write_text(_WRITES.format(offset=offset, call=call))
    record_in(folder, "whole")
    with open_recording(folder / "whole.rdbg") as recording:
        touched = next(e.number for e in recording.events(gate="posix.utime") if isinstance(e, Event))
    assert record_in(folder, "killed", killed_at=touched).status in KILLED


@pytest.mark.parametrize(("offset", "call", "content"), _IN_FLIGHT)
@pytest.mark.parametrize("is_made", [False, True], ids=["not_made", "made"])
def test_a_call_in_flight_explains_a_file(
    tmp_path: Path, offset: int, call: str, content: bytes, *, is_made: bool
) -> None:
    killed_before(tmp_path, offset, call)
    if is_made:
        (tmp_path / "output").write_bytes(content)

    resumed = resume_in(tmp_path, "killed")

    assert resumed.stdout == b"%d\n" % len(content), resumed
    assert (tmp_path / "output").read_bytes() == content


def test_a_truncation_in_flight_explains_no_other_size(tmp_path: Path) -> None:
    killed_before(tmp_path, 0, "file.truncate(3)")
    (tmp_path / "output").write_bytes(b"01")

    refused = resume_in(tmp_path, "killed")

    assert refused.status == 2
    assert b"output is shorter: 2 bytes, recorded 10" in refused.stderr


def test_a_new_file_that_may_have_been_made_in_flight_is_a_difference(tmp_path: Path) -> None:
    killed_before(tmp_path, 0, "open('lock', 'x')")
    (tmp_path / "lock").touch()

    refused = resume_in(tmp_path, "killed")

    assert refused.status == 2
    assert b"lock is there, empty, and newer than the last event" in refused.stderr
