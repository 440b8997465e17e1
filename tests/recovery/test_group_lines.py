"""From which cut a group goes on, and what it says of it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from replaydbg.log.group import read_group
from tests.harness.surroundings import without_steering
from tests.harness.waiting import process_fields, wait_until
from tests.recovery.killed_groups import record_killed, replaydbg, rows_of
from tests.resumes.group_rounds import kill_group

pytestmark = pytest.mark.slow

_STARTS = """import os, subprocess, sys
if sys.argv[1:]:
    sys.stdin.readline()
    print(subprocess.run([sys.executable, "-c", "print('grandchild')"], capture_output=True).stdout.decode(), end="")
    sys.exit()
child = subprocess.Popen([sys.executable, "program.py", "child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdin.write(b"go\\n")
child.stdin.close()
print(child.stdout.read().decode(), end="")
print(child.wait())
"""


def test_a_python_that_had_not_begun_is_started_again(tmp_path: Path) -> None:
    """It is killed as soon as it has a row among the processes, nearly always before its recording begins."""
    (tmp_path / "program.py").write_text(_STARTS)
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(tmp_path / "store")}
    command = [sys.executable, "-m", "replaydbg", "record", "-q", "-o", "one", "program.py"]
    directory = tmp_path / "one.rdbgs"
    process = subprocess.Popen(command, cwd=tmp_path, env=env, start_new_session=True)
    wait_until(lambda: len(rows_of(directory)) == 3 and rows_of(directory)[2].pid)
    kill_group(directory)
    process.communicate(timeout=60)
    wait_until(lambda: read_group(directory).is_complete)

    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert (resumed.status, resumed.stdout) == (0, b"grandchild\n0\n"), resumed
    assert b"replay two" not in resumed.stderr and b"two.rdbgs\n" in resumed.stderr, resumed


# The parent has started a second child after event 60, which lives on when the others are killed.
_SURVIVOR = """import os, sys, time
told, tell = os.pipe()
sys.stdin.readline()
if not os.fork():
    os.write(tell, b"x")
    time.sleep(1000)
    os._exit(0)
os.read(told, 1)
open("ready", "w").close()
sys.stdin.readline()
"""


def test_a_process_that_still_runs_is_not_started_again(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_SURVIVOR)
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(tmp_path / "store")}
    command = [sys.executable, "-m", "replaydbg", "record", "-q", "-o", "one", "program.py"]
    directory = tmp_path / "one.rdbgs"
    process = subprocess.Popen(command, cwd=tmp_path, env=env, stdin=subprocess.PIPE, start_new_session=True)
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    process.stdin.flush()
    wait_until((tmp_path / "ready").exists)
    first, survivor = (each.pid for each in rows_of(directory))
    os.kill(first, signal.SIGKILL)
    try:
        process.wait(60)

        refused = replaydbg(tmp_path, "resume", "one", "--at-cut", "1@2", "-o", "two")
    finally:
        kill_group(directory)
        process.communicate()

    assert refused.status == 2, refused
    assert f"one.rdbgs/2': its program is still running (process {survivor})" in refused.stderr.decode()
    assert not (tmp_path / "two.rdbgs").exists()


_ENDED = """import os, sys
sys.stdin.readline()
first = os.fork()
if not first:
    os._exit(5)
open("ready", "w").close()
sys.stdin.readline()
print(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]))
"""


def test_a_recording_that_nobody_had_sealed(tmp_path: Path) -> None:
    """Whoever seals recordings was killed with all others, right after a process had ended."""
    (tmp_path / "program.py").write_text(_ENDED)
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(tmp_path / "store")}
    command = [sys.executable, "-m", "replaydbg", "record", "-q", "-o", "one", "program.py"]
    directory = tmp_path / "one.rdbgs"
    process = subprocess.Popen(command, cwd=tmp_path, env=env, stdin=subprocess.PIPE, start_new_session=True)
    wait_until(lambda: rows_of(directory) and rows_of(directory)[0].pid)
    sealer = wait_until(lambda: _sealer_of(process.pid, rows_of(directory)[0].pid))
    os.kill(sealer, signal.SIGSTOP)
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    process.stdin.flush()
    wait_until((tmp_path / "ready").exists)
    wait_until(lambda: len(rows := rows_of(directory)) == 2 and process_fields(rows[1].pid)[0] == "Z")
    process.send_signal(signal.SIGSTOP)  # nobody else seals
    kill_group(directory)
    os.kill(sealer, signal.SIGKILL)
    process.kill()
    process.communicate()
    assert (directory / "2.rdbg-live").exists()

    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two", "--force")

    assert (resumed.status, resumed.stdout) == (0, b"5\n"), resumed
    assert (tmp_path / "two.rdbgs" / "2.rdbg").is_file()


def _sealer_of(recorder: int, program: int) -> int:
    """Return the process id of the process that seals, which is forked by the recorder; 0: it has not begun."""
    children = Path(f"/proc/{recorder}/task/{recorder}/children").read_text().split()
    return next((int(each) for each in children if int(each) != program), 0)


# Each has printed a line, and waits for a file that the second run finds.
_SLEEPS = """import os, sys, threading, time
def until(name):
    while not os.path.exists(name):
        time.sleep(0.02)
{threads}
child = os.fork()
print("child" if not child else "parent", flush=True)
if not child:
    open("child", "w").close()
    until("go")
    os._exit(0)
until("child")
open("ready", "w").close()
until("go")
print(os.waitpid(child, 0)[1])
"""
_LOCKED = "threading.Thread(target=threading.Event().wait, daemon=True).start()"


@pytest.mark.parametrize("threads", ["", _LOCKED], ids=["one thread", "a thread waits for a lock"])
def test_processes_that_only_sleep_go_on_from_their_ends(threads: str, tmp_path: Path) -> None:
    record_killed(tmp_path, _SLEEPS.format(threads=threads))
    (tmp_path / "go").touch()

    resumed = replaydbg(tmp_path, "resume", "one", "-q", "-o", "two")

    assert (resumed.status, resumed.stdout, resumed.stderr) == (0, b"0\n", b""), resumed


def test_calls_that_are_made_again_are_reported(tmp_path: Path) -> None:
    record_killed(tmp_path, _SLEEPS.format(threads=""))
    (tmp_path / "go").touch()

    resumed = replaydbg(tmp_path, "resume", "one", "-q", "--at-cut", "1@1", "-o", "two")

    assert resumed.stderr.startswith(b"replaydbg: 2 calls that reached outside of the group are made again "), resumed
    assert sorted(resumed.stdout.split()) == [b"0", b"child", b"parent"]
