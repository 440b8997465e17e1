"""After a power cut the disk may lack the last writes that the log has, and may have writes that the log lacks.

So a program goes on from the last moment at which the disk has all writes to its open files, and these files are
truncated to their sizes at that moment. By the output commit rule nobody else has seen anything later, if the
program synchronises its files before it lets others know (docs/explanation/design/resume.md, "After a power cut").
"""

from __future__ import annotations

import os

from replaydbg.classes import NamedTuple, replace
from replaydbg.errors import CannotResume
from replaydbg.events.records import Event
from replaydbg.log.reader import Recording
from replaydbg.resources.descriptions import Description
from replaydbg.resources.event_values import argument, integer, number_of
from replaydbg.resources.follow import ResourceHistory
from replaydbg.resources.kinds import EventNumber, LastFileWrite, OpenedFile, Resources, Unknown
from replaydbg.resources.memory_events import database_of
from replaydbg.resume.digest import output_digest

_SYNCHRONISE = frozenset({"posix.fsync", "posix.fdatasync"})
_SYNCHRONISE_ALL = "posix.sync"
_DATABASE = frozenset(f"_sqlite3.{each}" for each in ("vfs.open", "vfs.delete", "file.write", "file.sync"))


class Leftover(NamedTuple):
    """Bytes of a file after its recorded end, from events that are not in the log."""

    path: str
    size: int
    """The file's recorded end, in bytes."""
    found: int
    """Its size on the disk."""


def first_missing_write(recording: Recording, name: str) -> EventNumber:
    """Return the event of the first write that the disk lacks, or that nothing shows to be there; 0: it has all.

    Only files that are open right before that event count, and writes that the program has not synchronised. Raises
    CannotResume if the recording is not durable, or has no event log.
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
    """Return the first missing write among those up to the event `last`; None: the last one of the log."""
    history = ResourceHistory(recording, ())
    writes: dict[Description, list[LastFileWrite]] = {}
    deleted: dict[str, EventNumber] = {}
    for entry in recording.events(last=last):
        history.apply(entry)
        if isinstance(entry, Event):
            _follow(history, entry, writes)
            _follow_database(history, entry, writes, deleted)
    missing = [_first_of_file(each, writes[each]) for each in history.state.open if each in writes]
    missing += [event for path, event in deleted.items() if os.path.lexists(path)]
    return min(filter(None, missing), default=0)


def _follow(history: ResourceHistory, event: Event, writes: dict[Description, list[LastFileWrite]]) -> None:
    """Add the write that an event made, or remove those that it has synchronised."""
    if event.raised:
        return
    if event.gate == _SYNCHRONISE_ALL:
        writes.clear()
    number = number_of(event.arguments[0]) if event.arguments else -1
    description = history.state.numbers.get(number) if number >= 0 else None
    if description is None:
        return
    if event.gate in _SYNCHRONISE:
        for each in [each for each in writes if each.node is description.node]:
            del writes[each]
        return
    write = description.last_write
    # Those with O_SYNC are on the disk, too; the flag contains O_DSYNC.
    if write is not None and write.event == event.number and not description.has_flag(os.O_DSYNC):
        writes.setdefault(description, []).append(write)


def _follow_database(
    history: ResourceHistory,
    event: Event,
    writes: dict[Description, list[LastFileWrite]],
    deleted: dict[str, EventNumber],
) -> None:
    """Do the same for what SQLite has written, and keep which of its journals are deleted.

    SQLite does not wait until the directory has such a deletion, which commits a transaction: the library of another
    process would take a journal that is still there for that of a crashed program, and undo the transaction.
    """
    if event.gate not in _DATABASE or (event.outcome != 0 and event.gate != "_sqlite3.vfs.open"):
        return
    path = argument(event, 0)
    if event.gate in ("_sqlite3.vfs.open", "_sqlite3.vfs.delete"):
        absolute = history.state.absolute(path) if isinstance(path, str) and path else None
        if isinstance(absolute, str):
            deleted.pop(absolute, None)
            if event.gate == "_sqlite3.vfs.delete":
                deleted[absolute] = event.number
        return
    facts = database_of(history.state, event)
    if facts is None or not facts.descriptions:
        return
    description = facts.descriptions[0]
    if event.gate == "_sqlite3.file.sync":
        writes.pop(description, None)
    else:
        start, count = integer(argument(event, 1)), integer(argument(event, 2))
        writes.setdefault(description, []).append(LastFileWrite(event.number, start, count, event.digest))


def _first_of_file(description: Description, writes: list[LastFileWrite]) -> EventNumber:
    """Return the event of the first write that a file lacks; 0: it has them all, or is not there.

    Of a write that later ones may have overwritten, nothing shows whether it is there: it counts as missing.
    """
    path = description.node.path if description.node is not None else None
    if not isinstance(path, str):
        return 0
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return 0  # the plan reports it
    missing, low, high = 0, -1, -1
    try:
        for write in reversed(writes):
            if isinstance(write.offset, Unknown):
                missing = write.event
                continue
            start, end = write.offset, write.offset + write.length
            is_overwritten = low >= 0 and start < high and end > low
            if is_overwritten or write.digest is None or not _is_there(fd, start, write):
                missing = write.event
            low, high = (start, end) if low < 0 else (min(low, start), max(high, end))
    finally:
        os.close(fd)
    return missing


def _is_there(fd: int, start: int, write: LastFileWrite) -> bool:
    try:
        return output_digest(os.pread(fd, write.length, start)) == write.digest
    except OSError:  # it is a directory now, or a fifo
        return False


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
