"""The records of a log as bytes, each with its decoded entry."""

from __future__ import annotations

from collections.abc import Iterator

from replaydbg.classes import NamedTuple
from replaydbg.events.records import Entry
from replaydbg.log.coding.decode import Cursor
from replaydbg.log.entries.stream import LogStream

CONTROL, DEFINITION = 2, 3
"""Classes of records."""

END, LANE, LANE_STARTED = 3, 5, 9
"""Numbers of control records."""


class RawRecord(NamedTuple):
    """One record."""

    data: bytes
    """Its bytes."""
    entry: Entry | None
    """Its decoded content; None for a definition and for the checksums of a durable log."""

    @property
    def is_definition(self) -> bool:
        """Whether later records refer to it by its number."""
        return self.data[0] & 3 == DEFINITION


class RawStream(LogStream):
    """The entries of an event log with their bytes."""

    def records(self) -> Iterator[RawRecord]:
        """Yield all records, definitions included."""
        yield from self._decode(self._record)

    def _record(self, cursor: Cursor) -> RawRecord:
        start = cursor.pos
        entry = self._entry(cursor)
        return RawRecord(cursor.data[start : cursor.pos], entry)
