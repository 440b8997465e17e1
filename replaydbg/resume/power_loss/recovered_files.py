"""Bring log and files to the same state: choose the event to go live at, and find what files have beyond it."""

from __future__ import annotations

import os

from replaydbg.classes import NamedTuple, replace
from replaydbg.errors import CannotResume
from replaydbg.log.reader import Recording
from replaydbg.resources.follow import ResourceHistory
from replaydbg.resources.kinds import EventNumber, OpenedFile, Resources, Unknown
from replaydbg.resume.power_loss.unsynchronised import UnsynchronisedChanges


class Leftover(NamedTuple):
    """Bytes of a file after its recorded end, from events that are not in the log."""

    path: str
    size: int
    """The file's recorded end, in bytes."""
    found: int
    """Its size on the disk."""


def first_missing_change(recording: Recording, name: str) -> EventNumber:
    """Return the event of the first change of a file that the disk lacks, or does not show to have; 0: it has all.

    Changes are writes, the making of a file, and deletions of journals by SQLite. Only files that are open right before
    that event count, and changes that the program has not synchronised. Raises CannotResume if the recording is not
    durable, or has no event log.
    """
    if not recording.header.durable:
        reason = "it was not recorded with --durable: events before the power cut may be missing"
        raise CannotResume(name, reason)
    if recording.log_header is None:
        raise CannotResume(name, "none of its events had reached the disk, so nobody had seen any output: run it again")
    missing = 0
    while found := _first_missing(recording, missing - 1 if missing else None):
        missing = found  # before it, other files may have been open
    return missing


def _first_missing(recording: Recording, last: EventNumber | None) -> EventNumber:
    """Return the first missing change among those up to the event `last`; None: the last one of the log."""
    changes = UnsynchronisedChanges(ResourceHistory(recording, ()))
    for entry in recording.events(last=last):
        changes.apply(entry)
    return changes.first_missing()


def without_contents(resources: Resources) -> Resources:
    """Return resources whose files are not compared with what was written or read last.

    A lost write may have overwritten it, and what was read may be what the program had written before, and is lost.
    """
    opened = (
        replace(each, last_write=None, last_read=None) if isinstance(each, OpenedFile) else each
        for each in resources.opened
    )
    return replace(resources, opened=tuple(opened))


def unknown_ends(resources: Resources) -> tuple[str, ...]:
    """Return the differences of files that are always written at their end, if that is not recorded."""
    found = [each for each in _written(resources) if isinstance(each.size, Unknown) and _appends(each)]
    return tuple(
        f"{each.absolute}: its recorded size is unknown, so data after it cannot be recognised" for each in found
    )


def write_ahead_logs(resources: Resources) -> tuple[str, ...]:
    """Return the differences of databases that SQLite keeps with a write-ahead log.

    That can have commits on the disk which the log lacks. If the library writes the same pages again, what follows
    them on the disk is valid, too.
    """
    return tuple(
        f"{each.path}: its write-ahead log may have commits that the recording lacks"
        for each in resources.databases
        if any(path.endswith("-wal") for path in each.files)
    )


def leftovers(resources: Resources) -> tuple[Leftover, ...]:
    """Return what the files that a program writes have after their recorded ends."""
    found = dict[str, Leftover]()
    for each in _written(resources):
        assert isinstance(each.absolute, str)
        try:
            size = os.stat(each.absolute).st_size  # noqa: PTH116
        except OSError:
            continue
        if isinstance(each.size, int) and size > each.size:
            found[each.absolute] = Leftover(each.absolute, each.size, size)
    return tuple(found.values())


def _written(resources: Resources) -> list[OpenedFile]:
    return [
        each
        for each in resources.opened
        if isinstance(each, OpenedFile)
        and isinstance(each.absolute, str)
        and each.is_regular is not False
        and not each.is_deleted
        and isinstance(each.handle.flags, int)
        and each.handle.flags & os.O_ACCMODE != os.O_RDONLY
    ]


def _appends(opened: OpenedFile) -> bool:
    return isinstance(opened.handle.flags, int) and bool(opened.handle.flags & os.O_APPEND)
