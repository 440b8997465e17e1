"""Recordings made with --durable: threads wait together, signals are handled, a disk that fails ends the recording."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from replaydbg.events.stops import StopReason
from replaydbg.log.reader import open_recording
from tests.harness import tool
from tests.harness.power_cuts import build_library, read_copies
from tests.harness.replays import Outcome, passed_on, run
from tests.harness.sanitizer import preloading

pytestmark = pytest.mark.slow

_THREADS, _SENDS = 8, 15
_SENDERS = f"""import random, socket, threading
def send(number):
    here, there = socket.socketpair()
    for i in range({_SENDS}):
        here.send(b"x")
        print(number, i, random.random(), flush=True)
threads = [threading.Thread(target=send, args=(number,)) for number in range({_THREADS})]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
_SIGNALS = """import signal, socket, time
here, there = socket.socketpair()
came = []
signal.signal(signal.SIGALRM, lambda *_: came.append(time.time()))
signal.setitimer(signal.ITIMER_REAL, 0.0007, 0.0007)
for i in range(150):
    here.send(b"x")
    there.recv(1)
signal.setitimer(signal.ITIMER_REAL, 0)
print(len(came) > 3, sum(came))
"""
_RAISES = """import signal, socket, time
here, there = socket.socketpair()
here.setblocking(True)
def late(*_):
    raise TimeoutError("too late")
signal.signal(signal.SIGALRM, late)
sent = 0
for i in range(40):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0004 + i % 7 * 0.0002)
        sent += here.send(b"x")
        signal.setitimer(signal.ITIMER_REAL, 0)
    except TimeoutError as error:
        print(i, error, flush=True)
there.setblocking(False)
print(sent, len(there.recv(1000)) if sent else "none was in time")
"""


def test_threads_that_wait_share_a_synchronisation(tmp_path: Path) -> None:
    recorded = _record(tmp_path, _SENDERS, copies=True)
    replayed = _run(tmp_path, tool.replay(sys.executable, tmp_path / "r.rdbg"))

    assert (recorded.status, replayed.status) == (0, 0), recorded.stderr + replayed.stderr
    assert replayed.stdout == recorded.stdout
    assert 0 < len(read_copies(tmp_path / "copies")) < _THREADS * _SENDS


@pytest.mark.parametrize("program", [_SIGNALS, _RAISES], ids=["handled", "raised"])
def test_handlers_of_signals_that_come_meanwhile_replay(program: str, tmp_path: Path) -> None:
    recorded = _record(tmp_path, program)
    replayed = _run(tmp_path, tool.replay(sys.executable, tmp_path / "r.rdbg"))

    # On a quick disk each signal comes after its synchronisation; the replay must be equal all the same.
    assert recorded.status == 0, recorded.stderr
    assert (replayed.status, replayed.stdout) == (0, recorded.stdout), replayed.stderr


_FAILING = r"""
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
int fdatasync(int fd)
{
    static int calls;
    if (getenv("FAILS") && ++calls > 20) {
        errno = EIO;
        return -1;
    }
    return syscall(SYS_fdatasync, fd);
}
"""


def test_a_disk_that_fails_ends_the_recording_and_not_the_program(tmp_path: Path) -> None:
    library = tmp_path / "failing.so"
    (tmp_path / "failing.c").write_text(_FAILING)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "failing.c"], check=True, timeout=60)

    recorded = _record(tmp_path, _SENDERS, preloading(library) | {"FAILS": "1"})
    replayed = _run(tmp_path, tool.replay(sys.executable, tmp_path / "r.rdbg"))

    assert recorded.status == 0, recorded.stderr
    assert len(recorded.stdout.splitlines()) == _THREADS * _SENDS
    with open_recording(tmp_path / "r.rdbg") as recording:
        assert recording.log_header is not None
        assert recording.log_header.stopped is StopReason.IO_ERROR
    assert replayed.status == tool.ENDS_EARLY, replayed.stderr
    assert recorded.stdout.startswith(replayed.stdout)


def test_a_killed_program_is_kept_to_its_last_event(tmp_path: Path) -> None:
    """Also what was never synchronised: only a power cut loses that."""
    program = """import os, signal, time
for i in range(200):
    print(i, time.time(), flush=True)
os.kill(os.getppid(), signal.SIGKILL)
os.kill(os.getpid(), signal.SIGKILL)
"""
    recorded = _record(tmp_path, program)
    with open_recording(tmp_path / "r.rdbg-live") as recording:
        problems = recording.problems
        recording.check()
        damage = recording.damage
    replayed = _run(tmp_path, tool.replay(sys.executable, tmp_path / "r.rdbg-live"))

    assert recorded.status == 128 + signal.SIGKILL
    assert damage == ()
    assert not any("Power was lost" in each for each in problems)
    assert (replayed.status, replayed.stdout) == (tool.ENDS_EARLY, recorded.stdout), replayed.stderr


def test_the_setting_is_kept_in_the_header_and_shown(tmp_path: Path) -> None:
    _record(tmp_path, "print('x', flush=True)\n")
    command = [sys.executable, "-m", "replaydbg"]

    shown = _run(tmp_path, [*command, "info", "r.rdbg"])
    verified = _run(tmp_path, [*command, "verify", "--json", "r.rdbg"])

    assert "durable:    yes" in shown.stdout
    assert json.loads(verified.stdout)["durable"] is True


def _record(folder: Path, program: str, env: dict[str, str] | None = None, *, copies: bool = False) -> Outcome:
    (folder / "program.py").write_text(program)
    env = dict(env or {})
    if copies:
        (folder / "copies").mkdir()
        env |= preloading(build_library(folder)) | {"POWER_CUTS": str(folder / "copies")}
    command = tool.record(sys.executable, folder / "r.rdbg", ["program.py"], options=["--durable"])
    return _run(folder, command, env)


def _run(folder: Path, command: list[str], env: dict[str, str] | None = None) -> Outcome:
    base = {"PATH": os.defpath, "HOME": str(folder), **passed_on()}
    return run(command, cwd=folder, env=base | (env or {}))
