"""Children of a program that was killed: whatever the resumed one asks for them, SIGKILL has ended them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from tests.harness import tool
from tests.resume.going_on import record_in, resume_in, run_in

pytestmark = pytest.mark.slow

_BEGINNING = """import os, select, signal, subprocess
ended = []
signal.signal(signal.SIGCHLD, lambda *_: ended.append(1))
child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
before = os.pidfd_open(child.pid)
poller = select.epoll()
poller.register(before, select.EPOLLIN)
os.getppid()
os.getppid()
if not select.select([], [], [], 0)[0]:
    child.stdin.close()
"""
ASKED = {
    "wait": ("print(child.wait())", "-9"),
    "waitid": (
        "info = os.waitid(os.P_PID, child.pid, os.WEXITED); print(info.si_status, info.si_pid == child.pid)",
        "9 True",
    ),
    "any": ("pid, status = os.waitpid(-1, 0); print(pid == child.pid, os.waitstatus_to_exitcode(status))", "True -9"),
    "handler": ("while not ended: signal.sigtimedwait([signal.SIGUSR1], 0.01)\nprint(child.poll())", "-9"),
    "signals": ("os.kill(child.pid, 15); os.kill(child.pid, 9); print(child.wait())", "-9"),
    "a new pidfd": (
        "fd = os.pidfd_open(flags=0, pid=child.pid); select.select([fd], [], [])\n"
        "print(os.waitid(os.P_PIDFD, fd, os.WEXITED).si_status)",
        "9",
    ),
    "an old pidfd": (
        "print(poller.poll() == [(before, 1)]); signal.pidfd_send_signal(before, 15)\n"
        "print(os.waitid(os.P_PIDFD, before, os.WEXITED).si_status)\n"
        "try: signal.pidfd_send_signal(before, 15)\nexcept ProcessLookupError as error: print(error.errno)",
        "True\n9\n3",
    ),
    "no more": ("child.wait()\ntry: os.waitpid(-1, 0)\nexcept ChildProcessError: print('none')", "none"),
}


@pytest.mark.parametrize("asked", ASKED)
def test_what_a_lost_child_looks_like(asked: str, tmp_path: Path) -> None:
    source, expected = ASKED[asked]
    (tmp_path / "program.py").write_text(_BEGINNING + source + "\n")
    record_in(tmp_path, "whole")
    with open_recording(tmp_path / "whole.rdbg") as whole:
        mark = next(e.number for e in whole.events() if isinstance(e, Event) and e.gate == "posix.getppid")

    record_in(tmp_path, "one", killed_at=mark)
    resumed = resume_in(tmp_path, "one")
    replayed = run_in(tmp_path, tool.replay(sys.executable, tmp_path / "one-on.rdbg"))

    assert (resumed.status, resumed.stdout.decode()) == (0, f"{expected}\n"), resumed
    assert (replayed.status, replayed.stdout) == (0, resumed.stdout), replayed
