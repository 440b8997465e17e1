"""Remove the recordings of a store that no rule of retention keeps, and that nobody reads."""

from __future__ import annotations

import fcntl
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from replaydbg.errors import ReplaydbgError, UsageError, clause
from replaydbg.log.unfinished_group import is_being_made
from replaydbg.store.catalog import DIRECTORY, CatalogRow
from replaydbg.store.directory import Store
from replaydbg.store.own_files import OwnFiles
from replaydbg.store.removing import finish_removing, remove_recording, writer_in
from replaydbg.store.retention import Decision
from replaydbg.store.tags import TagsUnreadable


class Collected(NamedTuple):
    """The result for a recording that was to be removed."""

    name: str
    size: int
    """Its size in bytes."""
    why_not: str
    """Why it was not removed; empty: it was."""


@contextmanager
def only_collector(store: Store) -> Iterator[None]:
    """Let nobody else remove recordings of the store by rules in the block. Raises UsageError if somebody does."""
    with OwnFiles(store.directory / DIRECTORY).locked("collector") as is_ours:
        if not is_ours:
            raise UsageError(f"Another `gc --recordings` is running in {store.directory}.")
        finish_removing(store)
        yield


def collect(
    store: Store,
    decisions: Sequence[Decision],
    is_pinned: Callable[[CatalogRow], bool],
    keep_elsewhere: Callable[[Path], None] = lambda path: None,
) -> Iterator[Collected]:
    """Remove the recordings that no rule keeps, and yield what became of each.

    `is_pinned`: whether a recording has become pinned since it was decided; one for which that raises TagsUnreadable
    stays. `keep_elsewhere`: called with the path of each before it is removed; one for which that raises a
    ReplaydbgError stays.
    """
    files = store.files()
    copies = Counter(each.row.run for each in decisions)
    for row in (each.row for each in decisions if not each.rule):
        found = files.get(row.name)
        if found is None:
            continue  # somebody else has removed it
        try:
            why_not = "it has been pinned" if is_pinned(row) else ""
        except TagsUnreadable as error:  # since it was decided: others may have been removed already
            why_not = f"the tags in {error.path!r} cannot be read"
        run = row.run if copies[row.run] == 1 else ""  # a copy has the same tags
        why_not = why_not or _remove(store, Path(found[1].path), run, keep_elsewhere)
        if not why_not:
            copies[row.run] -= 1
        yield Collected(row.name, row.size, why_not)


def _remove(store: Store, path: Path, run: str, keep_elsewhere: Callable[[Path], None]) -> str:
    try:
        keep_elsewhere(path)  # whoever reads it holds it by a lock that we could not have meanwhile
        with _unused(path) as is_unused:
            if not is_unused:
                return "another replaydbg command has it open"
            if is_being_made(path):
                return "it is just being made"
            if writer_in(path) is not None:  # of a group whose first process has ended
                return "one of its processes is still being recorded"
            remove_recording(store, path, run)
    except OSError as error:
        return error.strerror or str(error)
    except ReplaydbgError as error:
        return f"it cannot be kept elsewhere: {clause(str(error))}"
    return "it has files of yours" if os.path.lexists(path) else ""


@contextmanager
def _unused(path: Path) -> Iterator[bool]:
    """Whether nobody has a recording open: whoever reads one has a shared lock of each of its files."""
    fds: list[int] = []
    try:
        yield all(_is_locked(each, fds) for each in (sorted(path.glob("*.rdbg")) if path.is_dir() else [path]))
    finally:
        for fd in fds:
            os.close(fd)


def _is_locked(path: Path, fds: list[int]) -> bool:
    """Lock a file, unless somebody else has; its descriptor is added to `fds`."""
    fds.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    try:
        fcntl.flock(fds[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
