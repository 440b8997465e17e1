"""Sessions of tests that are being recorded into a directory of results: each has a directory in it while it runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from replaydbg.store.private import FILE_MODE, make_directory
from replaydbg.store.processes import exists

WORK = ".replaydbg-work-"
"""How the names of directories begin in which a session of tests is recorded; the id of its process follows."""

SESSION = "session.rdbg"
"""The recording of the whole session in it, which is never finished."""

SAID = "said"
"""The file in it where stands what could not be written elsewhere: it has its room from the beginning."""

SAID_SIZE = 1 << 16

BEGAN = "began"
"""The file in it that is as old as the session."""


def session_directory(directory: Path, process: int) -> Path:
    """Return the directory of a session of tests that is recorded by that process."""
    return directory / f"{WORK}{process}"


def begin_session(directory: Path, process: int) -> Path:
    """Make that directory, and return it. Raises OSError."""
    work = session_directory(directory, process)
    make_directory(work)
    try:
        (work / BEGAN).touch(FILE_MODE)
        fd = os.open(work / SAID, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
        try:
            os.posix_fallocate(fd, 0, SAID_SIZE)
        finally:
            os.close(fd)
    except OSError:
        shutil.rmtree(work, ignore_errors=True)
        raise
    return work


def say(work: Path, texts: Iterable[str]) -> None:
    """Write lines into the file that has its room, in the place of those before; as many as there is room for."""
    data = b""
    for text in texts:
        line = text.encode("utf-8", "surrogateescape") + b"\n"
        if len(data) + len(line) < SAID_SIZE:
            data += line
    with suppress(OSError), (work / SAID).open("r+b") as file:
        file.write(data)


def said(work: Path) -> list[str]:
    """Return those lines."""
    try:
        data = (work / SAID).read_bytes()
    except OSError:
        return []
    return data.rstrip(b"\0").decode("utf-8", "surrogateescape").splitlines()


def oldest_session(directory: Path) -> float:
    """Return when the oldest session began that records there now, in seconds; a killed one does not count."""
    began = float("inf")
    for entry in os.scandir(directory):
        if not entry.name.startswith(WORK):
            continue
        with suppress(FileNotFoundError, ValueError):  # it has just ended; it is none of ours
            if exists(int(entry.name.removeprefix(WORK))):
                began = min(began, Path(entry.path, BEGAN).stat().st_mtime)
    return began
