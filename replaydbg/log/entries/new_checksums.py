"""Compute the checksums of a durable log anew after bytes of its records were replaced by as many others."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

from replaydbg.errors import Corrupt
from replaydbg.events.run_facts import GateRow
from replaydbg.log.coding.decode import Cursor
from replaydbg.log.entries.checksums import CHECKSUM_HEAD, SLOT, SLOT_FACTS, SLOTS
from replaydbg.log.entries.logfile import LOG_HEADER
from replaydbg.log.entries.stream import LogStream


def with_new_checksums(before: bytes, after: bytes, gates: Sequence[GateRow] = (), *, is_world: bool = False) -> bytes:
    """Return the log `after`, which has the records of the log `before`, with checksums of its own bytes.

    A slot that does not fit the bytes before stays as it is: it covers more of a parent's log than its child has.
    Raises Corrupt if a record of `before` cannot be read.
    """
    made = bytearray(after)
    stream = _Heads(iter([before[LOG_HEADER:]]), total=len(before) - LOG_HEADER, stored=len(before), gates=gates)
    for head in stream.heads(is_world=is_world):
        start = LOG_HEADER + head + 1 + SLOTS * SLOT.size
        for number in range(SLOTS):
            at = LOG_HEADER + head + 1 + number * SLOT.size
            length, events, expected = SLOT.unpack_from(before, at)
            if length and start + length <= len(before) and _sum(before, start, length, events) == expected:
                SLOT.pack_into(made, at, length, events, _sum(after, start, length, events))
    if stream.problem is not None:
        raise Corrupt("the recording", f"its log {stream.problem}")
    return bytes(made)


def _sum(data: bytes, start: int, length: int, events: int) -> int:
    return zlib.crc32(SLOT_FACTS.pack(length, events), zlib.crc32(memoryview(data)[start : start + length]))


class _Heads(LogStream):
    """Finds the records that begin stretches."""

    def heads(self, *, is_world: bool) -> Iterator[int]:
        """Yield their offsets, in bytes after the log's header."""
        read = self._answer if is_world else self._entry

        def head(cursor: Cursor) -> int:
            start = cursor.pos
            found = cursor.data[start : start + 1] == CHECKSUM_HEAD
            read(cursor)
            return cursor.pos - start if found else 0

        for size in self._decode(head):
            if size:
                yield self.position - size
