"""What commands write before it gets its name, and what is left of that when a process is killed.

Another machine, with other processes, may use the same directory: nothing is removed that is not a day old.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from replaydbg.log.unfinished_group import is_being_made
from replaydbg.store.directory import GROUP, PULLED
from replaydbg.store.process_check import exists

_DAY = 24 * 3600.0
"""In seconds."""
_FOLDER = ".replaydbg-"
_FOLDERS = re.compile(rf"(?:{re.escape(_FOLDER)}([0-9]+)-|{re.escape(PULLED)}([0-9]+)$).*")
"""Directories of commands; the process id is in their names."""
_FETCHED = re.compile(r"replaydbg-remote-[0-9]+-.*")
"""The directory of files that were fetched, see `remote.fetched_files`."""
_PARTIAL = re.compile(r"\.(.+)\.([0-9]+)\.partial(\..*)?", re.DOTALL)
"""A file or group that is being written: the name that it gets, and the process id."""


@contextmanager
def working_directory(parent: Path) -> Iterator[Path]:
    """Yield a directory in `parent` for what is to be moved or linked to its place there. Raises OSError."""
    with TemporaryDirectory(prefix=f"{_FOLDER}{os.getpid()}-", dir=parent) as folder:
        yield Path(folder)


def known_path(path: str) -> str:
    """Return the path that the user knows, of one that a command uses meanwhile: the target, or the directory of it."""
    found = Path(path)
    for each in (found, *found.parents):
        partial = _PARTIAL.fullmatch(each.name)
        if partial:
            return known_path(str(each.with_name(partial[1])))  # a part of a group has one within the other
        if _FOLDERS.fullmatch(each.name) or _FETCHED.fullmatch(each.name):
            return str(each.parent)
    return path


def remove_leftovers(directory: Path) -> None:
    """Remove from a directory of recordings all that killed processes have left there, and empty groups.

    What cannot be removed stays.
    """
    for path in _paths(directory):
        if _process(path.name) is not None:
            _remove_if_left(path)
        elif path.name.endswith(GROUP) and _is_old(path) and not is_being_made(path):
            with suppress(OSError):  # it is not empty, or no directory
                path.rmdir()


def remove_leftovers_of(target: Path) -> None:
    """Remove what killed processes have left of `target`, beside it. Other files there are none of our business."""
    for path in _paths(target.parent):
        match = _PARTIAL.fullmatch(path.name)
        if match[1] == target.name if match else path.name.startswith(_FOLDER):
            _remove_if_left(path)


def _paths(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:
        return []  # it does not exist, or cannot be read


def _process(name: str) -> int | None:
    """Return the id of the process that has written a file with this name; None: it is another file."""
    folder, partial = _FOLDERS.fullmatch(name), _PARTIAL.fullmatch(name)
    found = (folder[1] or folder[2]) if folder else partial[2] if partial else None
    return int(found) if found and len(found) < 10 else None


def _remove_if_left(path: Path) -> None:
    process = _process(path.name)
    if process is None or not _is_old(path) or exists(process):
        return
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _is_old(path: Path) -> bool:
    """Whether it is a file or directory that has not been changed for a day."""
    try:
        found = path.lstat()
    except OSError:
        return False
    is_ours = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    return is_ours and found.st_mtime < time.time() - _DAY
