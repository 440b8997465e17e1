"""Follow the counters of eventfds through the event log of a process."""

from __future__ import annotations

import sys
from collections import defaultdict

from replaydbg.distributed.descriptors import ChannelEnd, DescriptorTable
from replaydbg.distributed.stream_calls import argument
from replaydbg.events.records import Event

_MAKES, _READS, _WRITES = "posix.eventfd", "posix.eventfd_read", "posix.eventfd_write"
_READS_BYTES = {"posix.read", "_io.FileIO.read"}
_WRITES_BYTES = {
    "posix.write",
    "posix.writev",
    "_io.FileIO.write",
    "posix.readinto",
    "posix.readv",
    "_io.FileIO.readinto",
}
"""Of these it is not recorded how much the counter changed."""
_USES = {_READS, _WRITES} | _READS_BYTES | _WRITES_BYTES
_BYTES = 8


class EventfdCounts:
    """The effects of the events of a process on eventfds."""

    def __init__(self, table: DescriptorTable) -> None:
        """`table` has the descriptors of the process at each event."""
        self._table = table
        self.changes: defaultdict[ChannelEnd, list[tuple[int, int | None]]] = defaultdict(list)
        """For each eventfd the events that made, wrote or read it, and the change of its counter; None: unknown."""

    def before(self, event: Event) -> None:
        """Follow an event that the table has not followed yet: it wrote or read a descriptor."""
        if not self.changes or event.gate not in _USES or event.raised:
            return
        end = self._table.end_of(argument(event, 0), event.number)
        if end is not None and end in self.changes:
            self.changes[end].append((event.number, _change(event)))

    def after(self, event: Event) -> None:
        """Follow an event that the table has followed: it made an eventfd."""
        end = self._table.end_of(event.outcome, event.number) if event.gate == _MAKES and not event.raised else None
        if end is not None:
            self.changes[end].append((event.number, _given(event, 0)))


def _given(event: Event, index: int) -> int | None:
    given = argument(event, index)
    return given if isinstance(given, int) else None


def _change(event: Event) -> int | None:
    if event.gate == _WRITES:
        return _given(event, 1)
    if event.gate == _READS:
        return -event.outcome if isinstance(event.outcome, int) else None
    if isinstance(event.outcome, bytes) and len(event.outcome) == _BYTES:
        return -int.from_bytes(event.outcome, sys.byteorder)
    return None
