"""Remove recordings, and nothing else."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from replaydbg.errors import ReplaydbgError
from replaydbg.log.files import SIGNATURE, forget_signature
from replaydbg.log.group import FACTS, HIDDEN_PAGE, ORDERS, PAGE, WAKE, group_directory, read_group
from replaydbg.log.live_cuts import CUTS
from replaydbg.log.live_directory import remove_live
from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.store.clearing import clear
from replaydbg.store.directory import GROUP, INDEX, LIVE, SEALED, Store, index_path, is_group, live_path
from replaydbg.store.leftovers import remove_leftovers
from replaydbg.store.process_check import writer_of
from replaydbg.store.sealed_leftovers import remove_if_sealed, remove_sealed_leftovers
from replaydbg.store.tags import forget_tags

_BLOCK_FILE = re.compile(r"[0-9a-f]{32}|\.[0-9a-f]{32}\.[0-9]+|\.cleared|\.sealing")
"""A block, one that was not written to its end, the file of `clearing`, and the lock of whoever seals or clears."""
_UNFINISHED = re.compile(r"\.([0-9]+\.rdbg|group\.json)\.[0-9]+(\.partial)?|\.orders\.json")
"""Files that a killed process has left unfinished."""


def writer_in(path: Path) -> int | None:
    """Return the process id of a program that is still being recorded there, or in a group; None: none is."""
    for live in (path, *sorted(path.glob(f"*{LIVE}"))) if path.is_dir() else ():
        with suppress(OSError):  # it has no log
            process = writer_of((live / "log").stat())
            if process is not None:
                return process
    return None


_REMOVED = ".removed-"
"""The beginning of the names of groups that are being removed, in the store: their recordings are no longer there."""


def remove_recording(store: Store, path: Path, run: str = "") -> None:
    """Remove a recording: a sealed file with its index, a live directory, or a group. Raises OSError.

    `run` is the key of its tags, which are removed, too; empty: it has none, or a copy of it keeps them.
    """
    if path.name.endswith(GROUP) and path.is_dir() and not path.is_symlink():
        _remove_whole_group(path)
    elif path.is_dir() and not path.is_symlink():
        remove_live(path)
    else:
        _remove_sealed(path)
    _remove_if_empty(group_directory(path))
    if run:
        with suppress(OSError):  # they are then those of a run that is no longer there
            forget_tags(store, run)


def _remove_whole_group(path: Path) -> None:
    """Remove a group at once, and its files afterwards; with files of others in it, it stays where it is."""
    gone = path.with_name(f"{_REMOVED}{path.name}-{os.getpid()}")
    path.rename(gone)
    remove_group(gone)
    if gone.is_dir():
        gone.rename(path)


def _remove_if_empty(group: Path | None) -> None:
    """Remove the group whose last recording was removed: nobody can name it any more."""
    with suppress(ReplaydbgError):
        if group is not None and not is_group(group) and read_group(group).is_complete:
            remove_group(group)


def finish_removing(store: Store) -> None:
    """Remove what processes that were killed have left: of groups that they removed, unfinished files, and live
    directories that are sealed.

    Raises OSError.
    """
    remove_leftovers(store.directory)
    remove_sealed_leftovers(store.directory)
    for path in store.directory.glob(f"{_REMOVED}*{GROUP}-*"):
        if path.is_dir() and not path.is_symlink():
            remove_group(path)


def _remove_sealed(path: Path) -> None:
    if path.name.endswith(SEALED) and os.path.lexists(live_path(path)):
        remove_if_sealed(live_path(path))  # without the file, it would be a recording that was never sealed
    path.unlink()
    forget_signature(path)
    index_path(path).unlink(missing_ok=True)
    group = group_directory(path)
    if group is not None and (group / DIRECTORY).is_dir():
        with suppress(OSError):  # `gc` reports it
            clear(group)  # what only it used


def remove_group(directory: Path) -> None:
    """Remove the recordings of a group and its own files; with any other file in it, the directory stays.

    Raises OSError.
    """
    for path in sorted(directory.iterdir()):
        number, dot, ending = path.name.partition(".")
        endings = (SEALED, SEALED + INDEX, SEALED + SIGNATURE, LIVE + INDEX)
        is_recording = number.isdigit() and dot + ending in endings
        if (
            path.name in (PAGE, HIDDEN_PAGE, WAKE, ORDERS, FACTS, FACTS + SIGNATURE, CUTS)
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
