"""Run one command to its end and return its output, how it ended and its cost, children included."""

import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that has ended, by itself or at its time limit."""

    argv: tuple[str, ...]
    # Exit code, or minus the number of the signal that ended it.
    status: int
    stdout: bytes
    stderr: bytes
    # Seconds.
    wall: float
    # Seconds of user and system time of the process and of every child that was waited for.
    cpu: float
    # Whether it was killed because of the time limit.
    is_timed_out: bool
    # Peak memory in bytes of the largest of these processes. Not below our own: a process begins as a copy of its
    # parent.
    peak: int = 0

    @property
    def ending(self) -> str:
        """Description of how it ended."""
        if self.is_timed_out:
            return f"killed after {self.wall:.0f} s"
        if self.status < 0:
            return f"ended by {signal.Signals(-self.status).name}"
        return f"exit code {self.status}"


def run(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float) -> Finished:
    """Run `argv` with nothing on stdin; after `timeout` seconds its whole process group is killed.

    The output goes through files: a pipe would have to be drained by threads of ours during `wait4`.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.monotonic()
        process = subprocess.Popen(
            argv, cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        is_timed_out = not is_ended_within(process.pid, timeout)
        if is_timed_out:
            os.killpg(process.pid, signal.SIGKILL)
        _, wait_status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - started
        # Popen must not wait for a process that no longer exists.
        process.returncode = os.waitstatus_to_exitcode(wait_status)
        return Finished(
            argv=tuple(argv),
            status=process.returncode,
            stdout=_content(out.fileno()),
            stderr=_content(err.fileno()),
            wall=wall,
            cpu=usage.ru_utime + usage.ru_stime,
            is_timed_out=is_timed_out,
            peak=usage.ru_maxrss * 1024,
        )


def is_ended_within(pid: int, timeout: float) -> bool:
    """Wait for the end of a child process, which stays to be waited for; return whether it came in time."""
    descriptor = os.pidfd_open(pid)
    try:
        ready, _, _ = select.select([descriptor], [], [], timeout)
    finally:
        os.close(descriptor)
    return bool(ready)


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)
