"""Memory of the processes of a session, and its limit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from replaydbg.launch.proc import has_proc

TIMES = 2.6
"""The factor by which the memory of all together may exceed that of the process that runs the program: less than three,
because of those that are made later.
"""

ALWAYS = 256 << 20
"""Bytes that they may always take: a small program's processes cost more than what they share."""

LEAST_FREE = 0.1
"""The share of the machine's memory that stays free of checkpoints."""

_SAMPLE = 12
"""The number of processes that are measured; the others are assumed to be similar."""

_COPIED = 0.05
"""Measured again when the running process has copied that share of what is allowed."""

_LONGEST = 2.0
"""Seconds after which it is measured again anyway."""

_PAGE = 4096


class MemoryBudget:
    """Bytes that the processes of several sessions may take together: each session may take an equal share."""

    def __init__(self, most: int = 0) -> None:
        """`most`: the bytes; 0: a multiple of what the largest of their programs uses."""
        self._most = most
        self._wanted = ALWAYS
        self.sharers = 1
        """The number of sessions."""

    def share(self, of_program: int = 0) -> int:
        """Return the bytes that one session may take; `of_program`: what is right for its program."""
        self._wanted = max(self._wanted, of_program)
        return (self._most or self._wanted) // self.sharers


class MemoryLimit:
    """Watches over the memory of checkpoints while a process leaves them behind."""

    def __init__(self, most: int | MemoryBudget = 0) -> None:
        """`most`: bytes that all may use, or a budget with other sessions; 0: a multiple of what the program uses."""
        self.budget = most if isinstance(most, MemoryBudget) else MemoryBudget(most)
        """The bytes, which other sessions may share."""
        self.taken = 0
        """Bytes that all together took when they were measured last: memory, and page tables."""
        self.allowed = self.budget.share()
        """Bytes that they may take."""
        self._at = 0.0
        self._runner, self._faults = 0, 0

    def is_short(self, runner: int, checkpoints: Sequence[int]) -> bool:
        """Return whether the processes `checkpoints` that `runner` left behind (all process IDs) use too much."""
        faults = _faults(runner)
        if runner != self._runner:
            self._runner, self._faults = runner, 0
        copied = (faults - self._faults) * _PAGE
        if copied < self.allowed * _COPIED and time.monotonic() - self._at < _LONGEST:
            return False
        self._faults = faults
        return self.is_short_now(runner, checkpoints)

    def is_short_now(self, runner: int, checkpoints: Sequence[int]) -> bool:
        """Do what `is_short` does, but measure in any case."""
        self._at = time.monotonic()
        of_program = int(TIMES * _fields(runner, "status").get("VmRSS", 0))
        self.allowed = self.budget.share(of_program)
        self.taken = _of_one(runner) + memory_used(checkpoints)
        return self.taken > self.allowed or _machine_is_short()


def resident(pid: int) -> int:
    """Return the bytes of memory that a process has; 0 where that is not known."""
    return _fields(pid, "status").get("VmRSS", 0) if pid else 0


def await_end(processes: Sequence[int]) -> None:
    """Wait until these processes have given their memory back, but not for long."""
    until = time.monotonic() + _LONGEST
    for pid in processes:
        while _fields(pid, "smaps_rollup") and time.monotonic() < until:
            time.sleep(0.005)


def memory_used(processes: Sequence[int]) -> int:
    """Return the bytes that processes take, estimated from a dozen of them: what they share is counted by shares."""
    sample = processes[:: max(1, len(processes) // _SAMPLE)]
    found = [_of_one(pid) for pid in sample]
    return sum(found) * len(processes) // max(1, len(found))


def _of_one(pid: int) -> int:
    return _fields(pid, "smaps_rollup").get("Pss", 0) + _fields(pid, "status").get("VmPTE", 0)


def _machine_is_short() -> bool:
    found = _fields("", "meminfo")
    return found.get("MemAvailable", 1) < LEAST_FREE * found.get("MemTotal", 0)


def _fields(pid: int | str, name: str) -> dict[str, int]:
    """Return the lines `Name: 12 kB` of a kernel file, in bytes; empty if the file does not exist."""
    try:
        text = _text(pid, name)
    except OSError:
        return {}  # it has ended, or this system has none: then only the number of checkpoints is limited
    words = (line.split() for line in text.splitlines())
    return {each[0].rstrip(":"): int(each[1]) << 10 for each in words if len(each) == 3 and each[2] == "kB"}


def _text(pid: int | str, name: str) -> str:
    if pid and not has_proc():
        raise FileNotFoundError  # the number there is another process's
    return (Path("/proc") / str(pid) / name).read_text(encoding="ascii", errors="replace")


def _faults(pid: int) -> int:
    try:
        text = _text(pid, "stat")
    except OSError:
        return 0
    return int(text.rpartition(")")[2].split()[7])
