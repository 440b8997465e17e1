"""Wait for a condition that nothing announces: a file that another process writes, a screen, the end of an orphan.

A test never sleeps for as long as something will probably take: on a busy machine it takes longer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

_T = TypeVar("_T")

PATIENCE = 60.0
"""Timeout in seconds, on a machine with other load."""

_INTERVAL = 0.01
"""Seconds between two evaluations of a condition."""

_BUSY = 3
"""CPU ticks that a process uses only if it computes: to print a line takes a small part of one."""


def wait_until(condition: Callable[[], _T], timeout: float = PATIENCE, *, message: Callable[[], object] = str) -> _T:
    """Return the value of `condition` as soon as it is true; fail with `message` after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < deadline, message() or f"the condition was not met within {timeout:g} s"
        time.sleep(_INTERVAL)
    return found


async def wait_in_loop(
    condition: Callable[[], object], timeout: float = PATIENCE, *, message: Callable[[], object] = str
) -> None:
    """Do what `wait_until` does while other tasks of the event loop run."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, message() or f"the condition was not met within {timeout:g} s"
        await asyncio.sleep(_INTERVAL)


def wait_until_busy(processes: Callable[[], Iterable[int]], *, message: Callable[[], object] = str) -> None:
    """Return when one of `processes` computes; they are listed anew each time."""
    before = {pid: cpu_ticks(pid) for pid in processes()}
    wait_until(
        lambda: any(cpu_ticks(pid) >= before.get(pid, 0) + _BUSY for pid in processes()),
        message=lambda: message() or "nothing computes",
    )


def cpu_ticks(pid: int) -> int:
    """Return the CPU time that a process has used, in clock ticks; 0 if it has ended."""
    try:
        fields = process_fields(pid)
        return int(fields[11]) + int(fields[12])
    except (OSError, IndexError):
        return 0


def process_fields(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on, which follows the name in parentheses."""
    return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(") ")[2].split()
