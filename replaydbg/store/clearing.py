"""Removes blocks that no recording uses any more: of tests that were run again, and of recordings that were removed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from replaydbg.errors import BlocksMissing, NoSuchRecording, NotARecording, ReplaydbgError
from replaydbg.log.reader import open_recording
from replaydbg.log.shared import DIRECTORY
from replaydbg.store.directory import SEALED
from replaydbg.store.private import open_private
from replaydbg.store.sessions import WORK, oldest_session

_COUNT = ".cleared"
"""The file in the directory of blocks that says how many were left at the last time."""
_FEWEST = 256
"""So many blocks are worth no look at whether they are used."""
_YOUNG = 60.0
"""Seconds. A younger block may be of somebody of whom we know nothing, such as a session on another machine."""


@dataclass(frozen=True, slots=True)
class Cleared:
    """What was removed."""

    blocks: int
    """How many."""
    size: int
    """Their bytes."""
    kept: int
    """How many blocks are left."""
    why_not: str = ""
    """Why nothing was removed; empty: there was no hindrance."""


def clear_if_many(directory: Path) -> Cleared | None:
    """Clear, if there are twice as many blocks as were left at the last time; None: there are not.

    Otherwise it costs what listing their directory does.
    """
    blocks = directory / DIRECTORY
    try:
        number = len(os.listdir(blocks))  # noqa: PTH208 - at the end of each session
    except OSError:
        return None  # nothing was ever stored
    left = 0
    with suppress(OSError, ValueError):  # it was never cleared
        left = int((blocks / _COUNT).read_text(encoding="ascii"))
    return clear(directory) if number > max(2 * left, _FEWEST) else None


def clear(directory: Path) -> Cleared:
    """Remove the blocks in a directory of recordings that none of those in it uses. Raises OSError.

    Sessions that run meanwhile, there or beside us, keep theirs: whoever stores a block makes it as young as it is
    then, also one that is there already, and nothing is removed that is younger than the oldest session that runs.
    """
    blocks = directory / DIRECTORY
    until = min(oldest_session(directory), time.time() - _YOUNG)
    present = {entry.name: entry.stat() for entry in os.scandir(blocks) if not entry.name.startswith(".")}
    old = {name for name, stat in present.items() if stat.st_mtime < until}
    try:
        used = _used(directory) if old else set()
    except ReplaydbgError as error:
        return Cleared(0, 0, len(present), f"Cannot determine what a damaged recording uses: {error}")
    removed = old - used
    for name in sorted(removed):
        path = blocks / name
        with suppress(FileNotFoundError):  # somebody else clears, too
            if path.stat().st_mtime < until:  # still: a session may have begun just now
                path.unlink()
    kept = len(present) - len(removed)
    with open_private(blocks / _COUNT) as file:
        file.write(str(kept))
    return Cleared(len(removed), sum(present[name].st_size for name in removed), kept)


def _used(directory: Path) -> set[str]:
    used: set[str] = set()
    for path in _recordings(directory):
        # What is none, or has lost what it cannot be opened without, needs nothing any more.
        with suppress(NotARecording, BlocksMissing, NoSuchRecording), open_recording(path) as recording:
            used |= recording.shared_names()
    return used


def _recordings(directory: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(directory):
        folders[:] = [name for name in folders if name != DIRECTORY and not name.startswith(WORK)]
        # One that is being written has another name, and is of a session that runs.
        yield from (Path(folder) / name for name in files if name.endswith(SEALED))
