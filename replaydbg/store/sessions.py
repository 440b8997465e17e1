"""Test sessions that are being recorded into a directory of results: each has a directory in it while it runs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from replaydbg.store.private import FILE_MODE, make_directory
from replaydbg.store.process_check import exists

WORK = ".replaydbg-work-"
"""Prefix of the directories in which sessions of tests are recorded; the process id follows."""

SESSION = "session.rdbg"
"""The unfinished recording of the whole session in it."""

MESSAGES = "said"
"""The preallocated file in it for messages that could not be written elsewhere."""

MESSAGES_SIZE = 1 << 16

BEGAN = "began"
"""The file in it whose time is the start of the session."""


def session_directory(directory: Path, process: int) -> Path:
    """Return the directory of the test session recorded by that process."""
    return directory / f"{WORK}{process}"


def begin_session(directory: Path, process: int) -> Path:
    """Create that directory, and return it. Raises OSError."""
    work = session_directory(directory, process)
    make_directory(work)
    try:
        (work / BEGAN).touch(FILE_MODE)
        fd = os.open(work / MESSAGES, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
        try:
            os.posix_fallocate(fd, 0, MESSAGES_SIZE)
        finally:
            os.close(fd)
    except OSError:
        # Imported here: few sessions were killed, and the import would take two milliseconds of each.
        import shutil

        shutil.rmtree(work, ignore_errors=True)
        raise
    return work


def write_messages(work: Path, texts: Iterable[str]) -> None:
    """Write lines into the preallocated file, in place of those before; as many as fit."""
    data = b""
    for text in texts:
        line = text.encode("utf-8", "surrogateescape") + b"\n"
        if len(data) + len(line) < MESSAGES_SIZE:
            data += line
    with suppress(OSError), (work / MESSAGES).open("r+b") as file:
        file.write(data)


def messages(work: Path) -> list[str]:
    """Return those lines."""
    try:
        data = (work / MESSAGES).read_bytes()
    except OSError:
        return []
    return data.rstrip(b"\0").decode("utf-8", "surrogateescape").splitlines()


def oldest_session(directory: Path) -> float:
    """Return when the oldest session that is recorded there began, in seconds; killed sessions do not count."""
    began = float("inf")
    for entry in os.scandir(directory):
        if not entry.name.startswith(WORK):
            continue
        with suppress(FileNotFoundError, ValueError):  # it has just ended, or is not ours
            if exists(int(entry.name.removeprefix(WORK))):
                began = min(began, Path(entry.path, BEGAN).stat().st_mtime)
    return began
