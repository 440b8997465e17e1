"""Recording, replaying and debugging in a container or chroot that has no /proc."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from replaydbg.launch import interpreter
from replaydbg.native import _core
from tests.harness import tool
from tests.harness.replays import Outcome, passed_on, run
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.slow

_WAYS = (["--mount"], ["--user", "--map-root-user", "--mount"])
_HIDE = 'mount -t tmpfs none /proc && test ! -e /proc/self && exec "$@"'

_PROGRAM = """import os, random, sys, threading, time

def total(n):
    result = 0
    for i in range(n):
        result += i
    return result

print(time.time_ns(), random.random(), os.getpid(), os.urandom(4), os.path.exists("/proc/self"))
thread = threading.Thread(target=lambda: print(total(1000)))
thread.start()
thread.join()
answer = total(10)
sys.exit(3)
"""


@cache
def _hidden() -> list[str]:
    """Return the prefix of a command that runs it without /proc."""
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare command (util-linux)")
    for way in _WAYS:
        command = ["unshare", *way, "sh", "-c", _HIDE, "sh"]
        if subprocess.run([*command, "true"], check=False, capture_output=True, timeout=30).returncode == 0:
            return command
    pytest.skip("this system lets neither root nor a user namespace mount something over /proc")


def _env(tmp_path: Path) -> dict[str, str]:
    return {**passed_on(), "PATH": os.defpath, "XDG_DATA_HOME": str(tmp_path / "data")}


def _run(command: Sequence[str], tmp_path: Path, *, hidden: bool = True, stdin: bytes | None = None) -> Outcome:
    before = _hidden() if hidden else []
    return run([*before, *command], cwd=tmp_path, env=_env(tmp_path), stdin=stdin)


def _record(tmp_path: Path, source: str, *, hidden: bool = True) -> tuple[Path, Outcome]:
    recording = tmp_path / "r.rdbg"
    (tmp_path / "program.py").write_text(source)
    return recording, _run(tool.record(sys.executable, recording, ["program.py"]), tmp_path, hidden=hidden)


def _replayed(tmp_path: Path, recording: Path, *, hidden: bool) -> tuple[int, str, str]:
    outcome = _run(tool.replay(sys.executable, recording), tmp_path, hidden=hidden)
    return outcome.status, outcome.stdout, outcome.stderr


@pytest.mark.parametrize("recorded_hidden", [True, False])
def test_a_program_records_and_replays(recorded_hidden: bool, tmp_path: Path) -> None:
    """Whether recorded, replayed or both without /proc: nothing differs."""
    recording, recorded = _record(tmp_path, _PROGRAM, hidden=recorded_hidden)

    assert (recorded.status, recorded.stderr) == (3, "")
    assert recorded.stdout.endswith(f" {not recorded_hidden}\n499500\n")
    for hidden in (True, False):
        assert _replayed(tmp_path, recording, hidden=hidden) == (3, recorded.stdout, "")


def test_memory_shared_with_a_child_is_recorded(tmp_path: Path) -> None:
    """The child's writes into a memory file's map are input, which the core must compare."""
    recording, recorded = _record(
        tmp_path,
        """import mmap, os
fd = os.memfd_create("shared")
os.ftruncate(fd, 4096)
shared = mmap.mmap(fd, 4096)
pid = os.fork()
if pid == 0:
    shared[:4] = os.urandom(4)
    os._exit(0)
os.waitpid(pid, 0)
print(shared[:4])
""",
    )

    assert recorded.status == 0
    for hidden in (True, False):
        assert _replayed(tmp_path, recording, hidden=hidden)[:2] == (0, recorded.stdout)


@pytest.mark.parametrize("appends", [False, True])
def test_output_written_to_a_place_in_the_file_is_written_there(appends: bool, tmp_path: Path) -> None:
    """The replay cannot reopen its output, and tracks the positions of the descriptors that the program opened."""
    _hidden()
    (tmp_path / "program.py").write_text(
        """import os, sys
print("one", flush=True)
fd = os.open("out0", os.O_WRONLY)
os.pwrite(fd, b"ONE", 0)
os.lseek(fd, 10, 0)
os.write(fd, b"ten")
print("two", flush=True)
os.write(fd, b"!!")
"""
    )
    recording = tmp_path / "r.rdbg"
    written = []
    for number, command in enumerate(
        (tool.record(sys.executable, recording, ["program.py"]), tool.replay(sys.executable, recording))
    ):
        with (tmp_path / f"out{number}").open("ab" if appends else "wb") as out:
            before = _hidden() if number else []
            done = subprocess.run(
                [*before, *command], check=False, cwd=tmp_path, env=_env(tmp_path), stdout=out, timeout=60
            )
        assert done.returncode == 0
        written.append((tmp_path / f"out{number}").read_bytes())

    assert written[0] == written[1]


def test_the_debugger_travels(tmp_path: Path) -> None:
    """It trusts only processes that the keeper confirms, and evaluates under a memory limit."""
    recording, _ = _record(tmp_path, _PROGRAM)

    script = b"seek 0\nbreak total\ncontinue\np n\ncontinue\np n\nback\nwhere\nquit\n"
    outcome = _run([sys.executable, "-m", "replaydbg", "debug", "-q", str(recording)], tmp_path, stdin=script)

    assert outcome.status == 0, outcome
    assert outcome.stderr == ""
    assert "\n1000\n" in outcome.stdout
    assert "\n10\n" in outcome.stdout


def test_a_question_has_a_limit_on_memory(tmp_path: Path) -> None:
    """It is relative to the process's present memory, which the core finds by lowering the limit."""
    recording, _ = _record(tmp_path, _PROGRAM)
    script = b"p len(bytearray(64 << 20))\np len(bytearray(3 << 30))\nquit\n"

    outcome = _run([sys.executable, "-m", "replaydbg", "debug", "-q", str(recording)], tmp_path, stdin=script)

    assert "67108864" in outcome.stdout
    assert "MemoryError" in outcome.stdout + outcome.stderr


def test_snapshots_are_kept(tmp_path: Path) -> None:
    """The snapshot's copies of the program are waited for."""
    recording = tmp_path / "r.rdbg"
    # Time passes between the events, or all snapshots but the first would cost too much of the run.
    (tmp_path / "program.py").write_text("import time\nfor _ in range(5):\n    time.sleep(0.05)\n")

    recorded = _run(tool.record(sys.executable, recording, ["program.py"], ["--snapshot-every", "1"]), tmp_path)
    listed = _run([sys.executable, "-m", "replaydbg", "snapshots", str(recording)], tmp_path)

    assert (recorded.status, recorded.stderr) == (0, "")
    assert listed.status == 0
    # On a busy machine most are skipped: they would cost too much of the run.
    assert listed.stdout.startswith("@#1\t")


def test_a_proc_of_another_namespace_is_not_believed(tmp_path: Path) -> None:
    """Its numbers are those of other processes."""
    _hidden()
    apart = ["unshare", *([] if os.getuid() == 0 else ["--user", "--map-root-user"]), "--pid", "--fork"]
    if subprocess.run([*apart, "true"], check=False, capture_output=True, timeout=30).returncode:
        pytest.skip("this system allows no process namespace")
    recording, _ = _record(tmp_path, _PROGRAM, hidden=False)

    # Process 2 outside is the parent of the kernel's threads: the keeper gets another number.
    command = [
        *apart,
        "sh",
        "-c",
        'true; true; "$@"',
        "sh",
        sys.executable,
        "-m",
        "replaydbg",
        "debug",
        "-q",
        str(recording),
    ]
    outcome = run(command, cwd=tmp_path, env=_env(tmp_path), stdin=b"p 1 + 1\nwhere\nquit\n")

    assert (outcome.status, outcome.stderr) == (0, "")
    assert "\n2\n" in outcome.stdout


def test_no_process_of_a_session_is_left(tmp_path: Path) -> None:
    """The keeper does not know its children, and ends their group; its programs never leave that."""
    recording, _ = _record(tmp_path, _PROGRAM)
    command = [*_hidden(), sys.executable, "-m", "replaydbg", "debug", "-q", str(recording)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=tmp_path, env=_env(tmp_path)) as debugger:
        assert debugger.stdin is not None
        assert debugger.stdout is not None
        debugger.stdin.write(b"p 1 + 1\n")
        debugger.stdin.flush()
        while debugger.stdout.readline() not in (b"2\n", b""):
            pass
        keepers = [pid for pid, parent, _ in _processes() if parent == debugger.pid]
        before = _members(keepers)
        debugger.send_signal(signal.SIGKILL)

    assert len(keepers) == 1
    assert len(before) > 2
    wait_until(lambda: not _members(keepers))


def _processes() -> list[tuple[int, int, int]]:
    """Return the ids of all processes with those of their parents and groups, without those that have ended."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if fields[0] not in "ZX":
                    found.append((int(entry.name), int(fields[1]), int(fields[2])))
    return found


def _members(groups: Sequence[int]) -> list[int]:
    return [pid for pid, _, group in _processes() if group in groups]


@pytest.mark.parametrize("words", [["info"], ["verify"], ["check"], ["hits", "program.py:6"], ["doctor"]])
def test_reading_commands_work(words: list[str], tmp_path: Path) -> None:
    recording, _ = _record(tmp_path, _PROGRAM)
    command, *rest = words
    files = [] if command == "doctor" else [str(recording)]

    outcomes = [
        _run([sys.executable, "-m", "replaydbg", command, *files, *rest], tmp_path, hidden=hidden)
        for hidden in (True, False)
    ]

    assert outcomes[0].status == outcomes[1].status
    assert "/proc" not in outcomes[0].stdout + outcomes[0].stderr
    assert "Traceback" not in outcomes[0].stderr


def test_an_overdue_program_is_ended(tmp_path: Path) -> None:
    """A program that ignores SIGTERM is killed, and its recorder seals the recording."""
    # It goes on until it is killed.
    (tmp_path / "program.py").write_text(
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(0.1)\n"
    )
    command = [sys.executable, "-m", "replaydbg", "hunt", "--timeout", "2", "--runs", "1", "--", "program.py"]

    outcome = _run(command, tmp_path)

    assert "Traceback" not in outcome.stderr
    assert "run 1: failed (took longer than 2 s)" in outcome.stderr
    assert outcome.status == 3


def test_the_core_finds_what_proc_shows() -> None:
    """Both ways side by side, where there is a /proc."""
    high = os.open("/", os.O_RDONLY)
    copy = os.dup2(high, 1500, inheritable=True)
    try:
        shown = {int(entry.name) for entry in Path("/proc/self/fd").iterdir()}
        found = set(_core.descriptors())
        assert len(shown - found) <= 1  # the descriptor of the listing itself
        assert found <= shown
        assert copy in found
        assert copy in interpreter.inherited_fds()
    finally:
        os.close(copy)
        os.close(high)
    started_with = Path("/proc/self/environ").read_bytes()
    assert _core.first_environment() == started_with.split(b"\0")[:-1]
