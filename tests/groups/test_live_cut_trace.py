"""Taking a live cut makes no process of the group wait: a trace of the system calls of all processes shows it."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from replaydbg.log.group import read_group
from tests.harness import tool
from tests.harness.children import CHILDREN, completed
from tests.harness.process import run

STRACE = shutil.which("strace")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(STRACE is None, reason="it needs strace")]

# It computes for a while in each round, so that there are cuts.
PROGRAM = """\
import os
asked, ask = os.pipe()
answered, answer = os.pipe()
if not os.fork():
    for _ in range(100):
        os.write(answer, os.read(asked, 3))
    os._exit(0)
for number in range(100):
    os.write(ask, b"abc")
    os.read(answered, 3)
    sum(range(100_000))
os.wait()
"""
WAITS = (
    *("read", "readv", "recvfrom", "recvmsg", "accept", "accept4", "poll", "ppoll", "select", "pselect6"),
    *("epoll_wait", "epoll_pwait", "epoll_pwait2", "futex", "wait4", "waitid", "flock", "fcntl", "pause"),
    *("nanosleep", "clock_nanosleep", "rt_sigtimedwait", "rt_sigsuspend", "semtimedop", "msgrcv"),
)
"""System calls that can wait, of a program without sockets."""
ACTS_ON_OTHERS = ("kill", "tkill", "tgkill", "pidfd_send_signal", "ptrace", "process_vm_readv", "process_vm_writev")
STEPS = ("openat", "write", "close", "execve")
CALL = re.compile(r"(\d+) +(?:<\.\.\. )?(\w+)(?:\((.*)| resumed>)")


def traced(directory: Path, *options: str) -> tuple[list[tuple[int, str, str]], list[int], Path]:
    """Record the program under strace.

    Returns the calls (process or thread, name, rest), and the ids of the group's processes by their numbers: the kernel
    begins anew with low ids when it has given the highest one.
    """
    directory.mkdir()
    (directory / "prog.py").write_text(PROGRAM)
    calls = ",".join(f"?{each}" for each in (*WAITS, *ACTS_ON_OTHERS, *STEPS))
    command = tool.record(sys.executable, directory / "made", ["prog.py"], options=(*CHILDREN, *options))
    trace = [str(STRACE), "-f", "-qq", "-e", "signal=none", "-e", f"trace={calls}", "-o", str(directory / "trace")]
    done = run([*trace, *command], cwd=directory, env=dict(os.environ), timeout=100)
    if b"ptrace" in done.stderr and done.status != 0:
        pytest.skip("strace is not permitted to trace here")
    assert done.status == 0, done.stderr
    completed(directory / "made.rdbgs")
    lines = (directory / "trace").read_text(errors="replace").splitlines()
    found = [
        (int(each[1]), each[2], each[3] or "") for line in lines if (each := CALL.match(line)) and "resumed" not in line
    ]
    members = [each.pid for each in read_group(directory / "made.rdbgs").processes]
    return found, members, directory / "made.rdbgs"


def waits_of(calls: list[tuple[int, str, str]], member: int) -> Counter[str]:
    return Counter(name for process, name, _ in calls if process == member and name in WAITS)


def test_no_process_waits_because_of_a_cut(tmp_path: Path) -> None:
    plain, plain_members, _ = traced(tmp_path / "plain")
    calls, members, group = traced(tmp_path / "cuts", "--cut-every=5ms")
    taken = len(read_group(group).cuts)
    appending = [each for each in calls if each[1] == "openat" and 'made.rdbgs/cuts", O_WRONLY' in each[2]]

    # One thread takes all cuts, and it is none of the group. It writes their lines, and acts on no other process.
    assert len(appending) == taken > 3
    (writer,) = {process for process, _, _ in appending}
    assert writer not in members
    own = [(name, rest) for process, name, rest in calls if process == writer]
    assert all(re.match(r'\d+, "\d+ \d+ 0 0 ', rest) for name, rest in own if name == "write")
    assert not [name for name, _ in own if name in ACTS_ON_OTHERS]
    assert not [each for each in calls if each[0] in members and each[1] in ACTS_ON_OTHERS]
    # Each member makes as many calls that can wait as without cuts.
    for before, after in zip(plain_members, members, strict=True):
        assert waits_of(plain, before) == waits_of(calls, after)
