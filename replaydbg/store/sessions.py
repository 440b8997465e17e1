"""Sessions of tests that are being recorded into a directory of results: each has a directory in it while it runs."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

WORK = ".replaydbg-work-"
"""How the names of directories begin in which a session of tests is recorded; the id of its process follows."""

BEGAN = "began"
"""The file in it that is as old as the session."""


def begin_session(directory: Path, process: int) -> Path:
    """Make the directory of a session of tests that is recorded by that process, and return it. Raises OSError."""
    work = directory / f"{WORK}{process}"
    work.mkdir(parents=True, exist_ok=True)
    try:
        (work / BEGAN).touch()
    except OSError:
        work.rmdir()
        raise
    return work


def oldest_session(directory: Path) -> float:
    """Return when the oldest session began that records there now, in seconds; a killed one does not count."""
    began = float("inf")
    for entry in os.scandir(directory):
        if not entry.name.startswith(WORK):
            continue
        with suppress(FileNotFoundError, ValueError):  # it has just ended; it is none of ours
            if Path("/proc", str(int(entry.name.removeprefix(WORK)))).exists():
                began = min(began, Path(entry.path, BEGAN).stat().st_mtime)
    return began
