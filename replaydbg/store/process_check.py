"""Check whether a process exists, and which one writes a log."""

from __future__ import annotations

import os
from pathlib import Path


def exists(pid: int) -> bool:
    """Whether there is a process `pid`, of any user; one that has ended and has not been waited for counts."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def writer_of(log: os.stat_result) -> int | None:
    """Return the process id of the program that writes a log, given the file's status; None: there is no such process.

    A process that only follows the log has it mapped, too, but not to write.
    """
    mark = f" {os.major(log.st_dev):02x}:{os.minor(log.st_dev):02x} {log.st_ino} "
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal() or int(process.name) == os.getpid():
            continue
        try:
            maps = (process / "maps").read_text(errors="replace")
        except OSError:
            continue  # it has ended, or is somebody else's
        if any(mark in line and line.split()[1].startswith("rw") for line in maps.splitlines()):
            return int(process.name)
    return None
