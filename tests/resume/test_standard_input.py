"""A resumed program goes on in the standard input that it was reading, and not at its beginning."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from tests.harness.process import Finished
from tests.harness.surroundings import without_steering
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.slow

_LINES = "".join(f"line {number}\n" for number in range(6000))
# It kills itself in the middle: what it has read into its buffer by then is more than the lines that it has counted.
_COUNTS = """import os, signal, sys
count = 0
for line in sys.stdin:
    assert line == f"line {count}\\n", (line, count)
    count += 1
    if count == 3000:
        os.kill(os.getpid(), signal.SIGKILL)
print(count)
"""
_DEAD = (-9, 137)


def run_with(folder: Path, given: Path | None, words: Sequence[str], *, skip: int = 0, text: str = "") -> Finished:
    """Run a command whose standard input is the file `given` after its first `skip` bytes, or a pipe with `text`."""
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(folder / "store")}
    command = [sys.executable, "-m", "replaydbg", *words]
    if given is None:
        done = subprocess.run(command, cwd=folder, env=env, input=text.encode(), capture_output=True, timeout=60)
    else:
        with given.open("rb") as file:
            file.seek(skip)
            done = subprocess.run(command, cwd=folder, env=env, stdin=file, capture_output=True, timeout=60)
    return Finished(tuple(words), done.returncode, done.stdout, done.stderr, 0.0, 0.0, False)


def record_killed(folder: Path, text: str = _COUNTS, *, skip: int = 0, is_pipe: bool = False) -> Path:
    """Record a program that kills itself while it reads lines from a file; return that file."""
    (folder / "program.py").write_text(text)
    lines = folder / "lines"
    lines.write_text(_LINES)
    words = ["record", "-q", "--children=none", "-o", "one.rdbg", "program.py"]
    finished = run_with(folder, None if is_pipe else lines, words, skip=skip, text=_LINES)
    assert finished.status in _DEAD, finished
    return lines


def resume(folder: Path, given: Path | None, *more: str, text: str = "") -> Finished:
    words = ["resume", "one.rdbg", "--in-flight=skip", "-o", "two.rdbg", *more]
    return run_with(folder, given, words, text=text)


def test_the_same_file_goes_on_after_what_was_read(tmp_path: Path) -> None:
    lines = record_killed(tmp_path)

    planned = run_with(tmp_path, lines, ["resume", "one.rdbg", "--plan"])
    resumed = resume(tmp_path, lines)
    replayed = run_with(tmp_path, None, ["replay", "-q", "two.rdbg"])

    assert (resumed.status, resumed.stdout) == (0, b"6000\n"), resumed.stderr
    assert b"  reopened   standard input: continues at byte 32,768\n" in planned.stdout
    assert b"standard input: continues at byte 32,768\n" in resumed.stderr
    assert replayed.stdout == b"6000\n"


def test_a_resumed_program_that_is_killed_again_goes_on_in_it(tmp_path: Path) -> None:
    lines = record_killed(tmp_path, _COUNTS.replace("== 3000", "in (3000, 5000)"))

    assert resume(tmp_path, lines).status in _DEAD
    again = run_with(tmp_path, lines, ["resume", "two.rdbg", "--in-flight=skip", "-q"])

    assert (again.status, again.stdout) == (0, b"6000\n"), again.stderr


def test_what_was_read_from_a_pipe_is_found_in_a_file(tmp_path: Path) -> None:
    lines = record_killed(tmp_path, is_pipe=True)

    assert resume(tmp_path, lines).stdout == b"6000\n"


def test_a_program_that_began_after_the_start_of_the_file(tmp_path: Path) -> None:
    lines = record_killed(tmp_path, _COUNTS.replace("line {count}", "line {count + 1}"), skip=len("line 0\n"))

    assert resume(tmp_path, lines).stdout == b"5999\n"


def test_nothing_of_another_file_is_skipped(tmp_path: Path) -> None:
    record_killed(tmp_path, _COUNTS.replace("assert", "# "))
    other = tmp_path / "other"
    other.write_text("other\n" * 10_000)

    resumed = resume(tmp_path, other)

    sentence = b"standard input: the program had read 32,768 bytes from its own; none of them are skipped in this one"
    assert sentence in resumed.stderr
    # Some 3,600 lines were in its buffer; the last of these ends with the first one of the other file.
    assert int(resumed.stdout) > 13_000, resumed.stdout


def test_nothing_of_a_pipe_is_skipped(tmp_path: Path) -> None:
    record_killed(tmp_path, "import os\nos.read(0, 7)\nos.kill(os.getpid(), 9)\nprint(os.read(0, 7))\n")

    resumed = resume(tmp_path, None, text="more\n")

    assert resumed.stdout == b"b'more\\n'\n"
    assert b"standard input: the program had read 7 bytes from its own; none" in resumed.stderr


@pytest.mark.parametrize(
    ("reads", "position"),
    [
        ("os.read(0, 7)", 7),
        ("os.readv(0, [bytearray(3), bytearray(4)])", 7),
        ("os.read(os.dup(0), 14)", 14),
        ("os.lseek(0, 70, os.SEEK_SET), os.read(0, 10)", 80),
        ("os.read(0, 14), os.lseek(0, 7, os.SEEK_SET)", 7),
        ("os.pread(0, 7, 0), os.read(0, 6)", 6),
        ("os.read(0, 70_000)", 70_000),
    ],
)
def test_each_way_to_read_counts(reads: str, position: int, tmp_path: Path) -> None:
    lines = record_killed(tmp_path, f"import os\n{reads}\nos.kill(os.getpid(), 9)\nprint(os.lseek(0, 0, 1))\n")
    at = min(position, len(_LINES))

    assert int(resume(tmp_path, lines).stdout) == at


def test_what_the_kernel_copied_is_not_skipped(tmp_path: Path) -> None:
    """The recording does not have these bytes, so nothing shows that it is the same file."""
    text = "import os\nout = open('out', 'wb')\nos.copy_file_range(0, out.fileno(), 7)\nos.kill(os.getpid(), 9)\n"
    lines = record_killed(tmp_path, text + "print(os.read(0, 7))\n")

    resumed = resume(tmp_path, lines)

    assert b"standard input: the program had read 7 bytes" in resumed.stderr, resumed.stderr
    assert resumed.stdout == b"b'line 0\\n'\n"


def test_an_earlier_moment_goes_back_in_it(tmp_path: Path) -> None:
    text = "import os\nos.read(0, 7)\nos.getppid()\nos.read(0, 7)\nos.kill(os.getpid(), 9)\n"
    lines = record_killed(tmp_path, text)
    with open_recording(tmp_path / "one.rdbg") as recording:
        at = next(event.number for event in recording.events(gate="posix.getppid") if isinstance(event, Event))

    planned = run_with(tmp_path, lines, ["resume", "one.rdbg", "--plan", "--json", "--at", str(at)])

    streams = [row for row in json.loads(planned.stdout)["resources"] if row["text"] == "standard input"]
    assert [row["reason"] for row in streams] == ["continues at byte 7"]


def test_a_standby_goes_on_in_it(tmp_path: Path) -> None:
    waits = "print(os.getpid(), flush=True)\n        while not os.path.exists('go'): time.sleep(0.01)"
    text = _COUNTS.replace("signal, sys", "sys, time").replace("os.kill(os.getpid(), signal.SIGKILL)", waits)
    (tmp_path / "program.py").write_text(text)
    (tmp_path / "lines").write_text(_LINES)
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(tmp_path / "store")}
    tool = [sys.executable, "-m", "replaydbg"]
    record = [*tool, "record", "-q", "--children=none", "-o", "one.rdbg", "program.py"]
    follow = [*tool, "resume", "one.rdbg", "--follow", "--in-flight=repeat", "-o", "two.rdbg"]
    said = tmp_path / "said"
    with (tmp_path / "lines").open() as first, (tmp_path / "lines").open() as second, said.open("w") as errors:
        recorder = subprocess.Popen(record, cwd=tmp_path, env=env, stdin=first, stdout=subprocess.PIPE)
        assert recorder.stdout is not None
        pid = int(recorder.stdout.readline())
        standby = subprocess.Popen(follow, cwd=tmp_path, env=env, stdin=second, stdout=subprocess.PIPE, stderr=errors)
        wait_until(lambda: "hot standby for" in said.read_text())
        os.kill(pid, 9)
        recorder.communicate(timeout=60)
        (tmp_path / "go").touch()
        printed, _ = standby.communicate(timeout=60)

    assert "standard input: continues at byte 32,768" in said.read_text()
    assert printed == b"6000\n"
