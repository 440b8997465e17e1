"""Changes of files that a program has not synchronised: after a power cut the disk may lack any of them."""

from __future__ import annotations

import os

from replaydbg.events.records import Entry, Event
from replaydbg.resources.descriptions import Description
from replaydbg.resources.event_values import argument, first, integer, number_of
from replaydbg.resources.follow import ResourceHistory
from replaydbg.resources.kinds import EventNumber, LastFileWrite, Unknown
from replaydbg.resources.memory_events import database_of
from replaydbg.resume.digest import output_digest

_SYNCHRONISE = frozenset({"posix.fsync", "posix.fdatasync"})
_SYNCHRONISE_ALL = "posix.sync"
_CREATE = 0x04
"""`SQLITE_OPEN_CREATE`"""


class UnsynchronisedChanges:
    """The changes of files that nothing has synchronised so far, as a log is read."""

    def __init__(self, history: ResourceHistory) -> None:
        """`history`: of no event so far."""
        self._history = history
        self._writes: dict[Description, list[LastFileWrite]] = {}
        self._made: dict[Description, EventNumber] = {}
        """The events that made a file, or an empty one in its place: its directory may have no name for it."""
        self._deleted: dict[str, EventNumber] = {}
        """The journals that SQLite has deleted, by path.

        It does not wait until the directory has such a deletion, which commits a transaction: the library of another
        process would take a journal that is still there for that of a crashed program, and undo the transaction.
        """

    def apply(self, entry: Entry) -> None:
        """Follow the next entry of the log."""
        self._history.apply(entry)
        if not isinstance(entry, Event) or entry.raised:
            return
        if entry.gate.startswith("_sqlite3."):
            self._follow_database(entry)
        else:
            self._follow(entry)

    def first_missing(self) -> EventNumber:
        """Return the first change of a file that is open now which the disk lacks; 0: it has all."""
        is_open = set(self._history.state.open)
        missing = [_first_of_file(each, writes) for each, writes in self._writes.items() if each in is_open]
        missing += [event for each, event in self._made.items() if each in is_open and _is_gone(each, event)]
        missing += [event for path, event in self._deleted.items() if os.path.lexists(path)]
        return min(filter(None, missing), default=0)

    def _follow(self, event: Event) -> None:
        if event.gate == _SYNCHRONISE_ALL:
            self._writes.clear()
            self._made.clear()
        self._follow_making(event)
        number = number_of(event.arguments[0]) if event.arguments else -1
        description = self._history.state.numbers.get(number) if number >= 0 else None
        if description is None:
            return
        if event.gate in _SYNCHRONISE:
            self._synchronised(description)
            return
        write = description.last_write
        # Those with O_SYNC are on the disk, too; the flag contains O_DSYNC.
        if write is not None and write.event == event.number and not description.has_flag(os.O_DSYNC):
            self._writes.setdefault(description, []).append(write)

    def _follow_making(self, event: Event) -> None:
        outcome = event.outcome
        number = number_of(first(outcome) if isinstance(outcome, tuple) else outcome)
        made = self._history.state.numbers.get(number) if number >= 0 else None
        if made is not None and made.node is not None and made.node.made == event.number:
            self._made[made] = event.number

    def _synchronised(self, description: Description) -> None:
        for changes in (self._writes, self._made):
            for each in [each for each in changes if each.node is description.node]:
                del changes[each]

    def _follow_database(self, event: Event) -> None:
        if event.gate in ("_sqlite3.vfs.open", "_sqlite3.vfs.delete"):
            self._follow_name(event)
            return
        facts = database_of(self._history.state, event)
        if event.outcome != 0 or facts is None or not facts.descriptions:
            return
        description = facts.descriptions[0]
        if event.gate == "_sqlite3.file.sync":
            self._synchronised(description)
        elif event.gate == "_sqlite3.file.read" and description not in self._writes:
            self._made.pop(description, None)  # it had a content before, so it was not made
        elif event.gate == "_sqlite3.file.write":
            start, count = integer(argument(event, 1)), integer(argument(event, 2))
            write = LastFileWrite(event.number, start, count, event.digest)
            self._writes.setdefault(description, []).append(write)

    def _follow_name(self, event: Event) -> None:
        """Follow the opening or the deletion of a file by SQLite."""
        path, state = argument(event, 0), self._history.state
        absolute = state.absolute(path) if isinstance(path, str) and path else None
        if not isinstance(absolute, str) or integer(event.outcome, -1) < 0:
            return
        if event.gate == "_sqlite3.vfs.delete":
            self._deleted[absolute] = event.number
            return
        self._deleted.pop(absolute, None)
        if integer(argument(event, 1)) & _CREATE:
            self._made |= {each: event.number for each in state.databases[-1].descriptions}


def _is_gone(description: Description, made: EventNumber) -> bool:
    """Whether the disk lacks the name of a file that was made, and not renamed or removed since."""
    node = description.node
    if node is None or node.is_deleted or node.made != made or not isinstance(node.path, str):
        return False
    return not os.path.lexists(node.path)


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
