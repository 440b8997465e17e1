"""End a replay that waits: for longer than its recording can explain, without using the processor.

A replay waits for nothing by itself, but native code in it may wait for something that only the recorded run had. A
limit on CPU time never ends that. So its process is looked at from outside, once a second.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Sequence
from contextlib import suppress

INTERVAL = 1.0
"""Seconds between two looks."""

_WORKING = 0.05
"""The part of an interval in which a process that works has used the processor.

Less is no work: native code could otherwise wait for ever by looking at a clock now and then.
"""

_RECOVERY = 5
"""Looks without work that one look with work makes up for. One that made up for all would be as easy to abuse."""

_ASLEEP = b"SZX"
"""States of threads that wait, or have ended.

Others are running, or ready to on a busy machine (R), waiting for a disk or for memory that was paged out (D), or
stopped by Ctrl-Z or a debugger (T, t).
"""


class IdleWatch:
    """Counts the looks at which a process waited, and kills it when there are too many.

    Looks are counted, not seconds: none takes place while this process is stopped as well, or the machine is suspended.
    """

    def __init__(self, pid: int, *, seconds: float, outputs: Sequence[int]) -> None:
        """`seconds` is how long it may wait; `outputs` are its output descriptors, whose reader may be slow."""
        self.has_ended_it = False
        """Whether the process was killed because it waited too long."""
        self._pid = pid
        self._pidfd = os.pidfd_open(pid)  # its number could be another process's by the time it is killed
        self._most = seconds / INTERVAL
        self._idle = 0
        self._used = self._cpu_seconds()
        self._poll = select.poll()
        for fd in outputs:
            self._poll.register(fd, select.POLLOUT)
        self._outputs = len(set(outputs))

    def look(self) -> None:
        """Look at the process once."""
        used = self._cpu_seconds()
        worked, self._used = used - self._used > _WORKING * INTERVAL, used
        if worked or not self._is_asleep():
            self._idle = max(0, self._idle - _RECOVERY)
        elif self._takes_output():
            self._idle += 1
        if self._idle > self._most:
            self.has_ended_it = True
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def close(self) -> None:
        """Forget the process."""
        os.close(self._pidfd)

    def _cpu_seconds(self) -> float:
        # After the name, which may contain anything: fields 14 and 15 are the user and system time.
        fields = _read(f"/proc/{self._pid}/stat").rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if len(fields) > 12 else 0.0

    def _is_asleep(self) -> bool:
        """Whether all of its threads wait."""
        try:
            with os.scandir(f"/proc/{self._pid}/task") as threads:
                return all(_state(thread.path) in _ASLEEP for thread in threads)
        except OSError:
            return False  # it has ended

    def _takes_output(self) -> bool:
        """Whether its output is read; `replay | less` waits for a person."""
        return len(self._poll.poll(0)) == self._outputs


def _state(thread: str) -> bytes:
    return _read(f"{thread}/stat").rpartition(b")")[2][1:2]


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib is not imported for this
            return file.read()
    except OSError:
        return b""


def can_watch() -> bool:
    """Whether this system has what a watch needs."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return os.path.exists("/proc/self/task")  # noqa: PTH110
