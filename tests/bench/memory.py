"""The memory and CPU time of processes: shared memory counts once, and page tables count, too."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Held:
    """The memory of a session's processes, in bytes, at one moment."""

    processes: int
    # The proportional share of each in its pages, added up.
    pages: int
    # Not part of the pages: each process has its own.
    page_tables: int
    # The keeper's own, pages and tables; it runs nothing of the program.
    keeper: int
    # Seconds that adding it up took.
    took: float

    @property
    def total(self) -> int:
        """All of it."""
        return self.pages + self.page_tables + self.keeper


def held_by_session() -> Held:
    """Add up what the processes hold whose keeper is a child of this process; it must have no other child."""
    began = time.monotonic()
    keepers = children_of(os.getpid())
    standing = [pid for keeper in keepers for pid in children_of(keeper)]
    pages = sum(_figure(pid, "smaps_rollup", "Pss") for pid in standing)
    tables = sum(_figure(pid, "status", "VmPTE") for pid in standing)
    own = sum(_figure(pid, "smaps_rollup", "Pss") + _figure(pid, "status", "VmPTE") for pid in keepers)
    return Held(len(standing), pages, tables, own, time.monotonic() - began)


def children_of(pid: int) -> list[int]:
    """Return the child processes of `pid`; none if it has ended."""
    found: list[int] = []
    for each in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found.extend(map(int, each.read_text().split()))
        except OSError:
            continue
    return found


def peak_of(argv: Sequence[str], *, env: dict[str, str], cwd: Path) -> int:
    """Run a command and return the peak memory of its process in bytes.

    `wait4` never reports less than the starting process's own memory; this is the process's own figure, sampled until
    it ends.
    """
    process = subprocess.Popen(
        argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    peak = 0
    while process.poll() is None:
        peak = max(peak, _figure(process.pid, "status", "VmHWM"))
        time.sleep(0.01)  # the interval of the samples
    return peak


def cpu_milliseconds(pid: int) -> float:
    """Return the CPU time of a process since its start; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6
    except OSError:
        return 0.0


def seconds_queued() -> float | None:
    """Return for how many seconds since boot some process waited for a CPU; None: this is not measured."""
    try:
        found = re.search(r"^some .*total=(\d+)", Path("/proc/pressure/cpu").read_text())
    except OSError:
        return None
    return int(found[1]) / 1e6 if found else None


def _figure(pid: int, file: str, name: str) -> int:
    """Return bytes; 0 for a process that has ended."""
    try:
        text = Path(f"/proc/{pid}/{file}").read_text()
    except OSError:
        return 0
    found = re.search(rf"^{name}:\s*(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0
