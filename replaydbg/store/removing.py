"""Remove a group of processes, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from replaydbg.log.container import remove_live
from replaydbg.log.group import FACTS, HIDDEN_PAGE, ORDERS, PAGE, WAKE
from replaydbg.log.live_cuts import CUTS
from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.store.directory import INDEX, LIVE, SEALED

_BLOCK_FILE = re.compile(r"[0-9a-f]{32}|\.[0-9a-f]{32}\.[0-9]+|\.cleared")
"""A block, one that was not written to its end, and the file of `clearing`."""
_UNFINISHED = re.compile(r"\.([0-9]+\.rdbg|group\.json)\.[0-9]+(\.partial)?")
"""Files that a killed process has left unfinished."""


def remove_group(directory: Path) -> None:
    """Remove the recordings of a group and its own files; with any other file in it, the directory stays.

    Raises OSError.
    """
    for path in sorted(directory.iterdir()):
        number, dot, ending = path.name.partition(".")
        is_recording = number.isdigit() and dot + ending in (SEALED, SEALED + INDEX, LIVE + INDEX)
        if (
            path.name in (PAGE, HIDDEN_PAGE, WAKE, ORDERS, FACTS, CUTS)
            or is_recording
            or _UNFINISHED.fullmatch(path.name)
        ):
            path.unlink()
        elif number.isdigit() and dot + ending == LIVE and not path.is_symlink():
            remove_live(path)
    _remove_blocks(directory / DIRECTORY)
    if not any(directory.iterdir()):
        directory.rmdir()


def _remove_blocks(directory: Path) -> None:
    """Remove the blocks of a group, and what a process that was killed while it wrote one has left."""
    if not directory.is_dir() or directory.is_symlink():
        return
    for path in directory.iterdir():
        if _BLOCK_FILE.fullmatch(path.name):
            path.unlink(missing_ok=True)
    if not any(directory.iterdir()):
        directory.rmdir()
