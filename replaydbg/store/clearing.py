"""Remove blocks that no recording uses any more: those of replaced test recordings and of removed recordings.

A group of processes has blocks of its own, and a store has: they are cleared as those of a directory of test recordings
are.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from replaydbg.classes import dataclass
from replaydbg.errors import BlocksMissing, NoSuchRecording, NotARecording, ReplaydbgError
from replaydbg.log.group import read_group
from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.log.sealed.store_blocks import alone
from replaydbg.store.directory import GROUP, SEALED, Store
from replaydbg.store.private import open_private
from replaydbg.store.sessions import WORK, oldest_session

_COUNT = ".cleared"
"""The file in the directory of blocks with their number after the last clean-up."""
_FEWEST = 256
"""Number of blocks up to which a clean-up is not worthwhile."""
MOST_AT_ONCE = 500
"""Recordings of a store up to which its blocks are cleared whenever one is removed; with more, `gc` does it."""
_YOUNG = 60.0
"""Seconds. A younger block may belong to an unknown user, such as a session on another machine."""


@dataclass(frozen=True, slots=True)
class Cleared:
    """The result of a clean-up."""

    blocks: int
    """Number of removed blocks."""
    size: int
    """Their total size in bytes."""
    kept: int
    """Number of blocks left."""
    why_not: str = ""
    """Why nothing was removed; empty: there was no obstacle."""


def clear_if_many(directory: Path) -> Cleared | None:
    """Clean up if the number of blocks has doubled since the last time; None: it has not.

    If not, the cost is that of listing their directory.
    """
    blocks = directory / DIRECTORY
    try:
        number = len(os.listdir(blocks))  # noqa: PTH208 - at the end of each session
    except OSError:
        return None  # nothing was ever stored
    left = 0
    with suppress(OSError, ValueError):  # there was no clean-up before
        left = int((blocks / _COUNT).read_text(encoding="ascii"))
    return clear(directory) if number > max(2 * left, _FEWEST) else None


def clear_store(store: Store) -> None:
    """Remove what only recordings used that were just removed; of a large store that is left to `gc`."""
    if (store.directory / DIRECTORY).is_dir() and len(store.files()) <= MOST_AT_ONCE:
        with suppress(OSError):  # `gc` reports it
            clear(store.directory)


def clear(directory: Path) -> Cleared:
    """Remove the blocks in a directory of recordings that none of the recordings in it uses. Raises OSError.

    Concurrent sessions keep their blocks: storing a block sets its time to the present, even if it exists already, and
    only blocks older than the oldest running session are removed. Whoever seals a recording of a store holds a lock.
    """
    with alone(directory) as is_alone:
        if is_alone:
            return _clear(directory)
        kept = sum(not entry.name.startswith(".") for entry in os.scandir(directory / DIRECTORY))
        return Cleared(0, 0, kept, "A recording that uses them is just being sealed.")


def _clear(directory: Path) -> Cleared:
    blocks = directory / DIRECTORY
    until = min(oldest_session(directory), time.time() - _YOUNG)
    running = _running_group(directory)
    if running is not None:
        return Cleared(0, 0, sum(not entry.name.startswith(".") for entry in os.scandir(blocks)), running)
    present = {entry.name: entry.stat() for entry in os.scandir(blocks) if not entry.name.startswith(".")}
    old = {name for name, stat in present.items() if stat.st_mtime < until}
    try:
        used = _used(directory) if old else set()
    except ReplaydbgError as error:
        return Cleared(0, 0, len(present), f"Cannot determine what a damaged recording uses: {error}")
    removed = old - used
    for name in sorted(removed):
        path = blocks / name
        with suppress(FileNotFoundError):  # another process cleans up, too
            if path.stat().st_mtime < until:  # checked again: a session may have begun just now
                path.unlink()
    kept = len(present) - len(removed)
    with suppress(OSError), open_private(blocks / _COUNT) as file:  # the disk may be full: then room is made most often
        file.write(str(kept))
    return Cleared(len(removed), sum(present[name].st_size for name in removed), kept)


def _running_group(directory: Path) -> str | None:
    """Return why the blocks of a group have to stay; None: it is complete, or no group."""
    if not directory.name.endswith(GROUP):
        return None
    try:
        is_complete = read_group(directory).is_complete
    except ReplaydbgError as error:
        return str(error)
    return None if is_complete else "Not all processes of the group have ended, or some could not be sealed."


def blocks_in(directory: Path) -> list[Path]:
    """Return the directories whose blocks can be cleared: `directory` itself, and groups beneath it."""
    found = []
    for folder, folders, _ in os.walk(directory):
        if DIRECTORY in folders and (folder == str(directory) or folder.endswith(GROUP)):
            found.append(Path(folder))
        folders[:] = [name for name in sorted(folders) if name != DIRECTORY and not name.startswith(WORK)]
    return found


def _used(directory: Path) -> set[str]:
    # Imported here: at the end of most sessions the blocks are only counted.
    from replaydbg.log.used_blocks import used_blocks

    used: set[str] = set()
    for path in _recordings(directory):
        # A file that is not a recording, or is damaged beyond opening, needs no blocks.
        with suppress(NotARecording, BlocksMissing, NoSuchRecording):
            used |= used_blocks(path)
    return used


def _recordings(directory: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(directory):
        folders[:] = [name for name in folders if name != DIRECTORY and not name.startswith(WORK)]
        # A recording that is being written has another name, and belongs to a running session.
        yield from (Path(folder) / name for name in files if name.endswith(SEALED))
