"""The stretches of a durable log: what of it is whole after a power cut (format.md, 2.1).

The disk may have any of the pages that were written after the last synchronisation, in any version. So neither the
header nor a length in the log can be believed without the checksum of the bytes that it speaks of.
"""

from __future__ import annotations

import struct
import zlib

from replaydbg.classes import NamedTuple
from replaydbg.log.coding.decode import Cursor, Malformed, Short
from replaydbg.log.entries.logfile import LOG_HEADER
from replaydbg.log.files import DataFile

CHECKSUM = 21
"""The number of the control record that begins a stretch."""

CHECKSUM_HEAD = bytes([CHECKSUM << 2 | 2])
"""The first byte of that record."""
SLOT = struct.Struct("<III")
"""A slot: length of the stretch, its events, checksum."""
SLOT_FACTS = struct.Struct("<II")
"""The part of a slot that its checksum covers, after the bytes of the stretch."""
SLOTS = 2
_FACTS = 4
_MOST_FACTS = 10 * _FACTS
"""The longest numbers behind the slots, in bytes."""


class Stretches(NamedTuple):
    """The part of a log that is whole."""

    end: int
    """Where it ends, as an offset in the file."""
    events: int
    """Number of events in the process up to there; of a world log 0."""
    transfers: int
    """Bytes of the file `transfers` that were synchronised by then; of a world log 0."""
    stretches: int
    """Number of whole stretches."""
    why: str
    """Why it ends there."""


class _Facts(NamedTuple):
    """The numbers of a CHECKSUM record."""

    events: int
    world: int
    content: int
    transfers: int


def skip_checksum(cursor: Cursor) -> None:
    """Move `cursor`, which is behind the head of a CHECKSUM record, behind the record."""
    cursor.raw(SLOTS * SLOT.size)
    for _ in range(_FACTS):
        cursor.varint()


def is_durable(file: DataFile) -> bool:
    """Whether a log file is made of stretches."""
    return file.read(LOG_HEADER, 1) == CHECKSUM_HEAD


def whole_stretches(file: DataFile, *, world: int | None = None, content: int = 0) -> Stretches:
    """Return the longest whole beginning of a durable log.

    `world` and `content` are the bytes of the other two files that are whole: events that may refer to more of them are
    left out; `world` is None for the world log itself. Every byte is read once.
    """
    found = Stretches(LOG_HEADER, 0, 0, 0, "what follows was not written")
    while True:
        head = file.read(found.end, 1 + SLOTS * SLOT.size)
        start = found.end + len(head)
        if head[:1] != CHECKSUM_HEAD or start - found.end != 1 + SLOTS * SLOT.size:
            return found._replace(why=_why_no_stretch(file, found.end))
        facts = _facts(file.read(start, _MOST_FACTS))
        if facts is None:
            return found._replace(why="what follows was not written")
        if world is not None and (facts.world > world or facts.content > content):
            return found._replace(why="events after that refer to a part of the import world or of a file that is lost")
        length, events, is_complete = _longest(file, start, head)
        if length == 0:
            return found._replace(why="a checksum differs")
        found = Stretches(start + length, facts.events + events, facts.transfers, found.stretches + 1, found.why)
        if not is_complete:
            return found._replace(why="a checksum differs")


def _why_no_stretch(file: DataFile, end: int) -> str:
    following = file.read(end, 64)
    return "a checksum differs" if any(following) else "what follows was not written"


def _facts(data: bytes) -> _Facts | None:
    cursor = Cursor(data, [])
    try:
        return _Facts(*(cursor.varint() for _ in range(_FACTS)))
    except (Short, Malformed):
        return None


def _longest(file: DataFile, start: int, head: bytes) -> tuple[int, int, bool]:
    """Return length and number of events of the stretch at `start`, by the slot that fits and covers most; else 0.

    Also whether no slot covers more. If one does, no stretch can follow: so no byte is read for two stretches.
    """
    slots = sorted(SLOT.unpack_from(head, 1 + number * SLOT.size) for number in range(SLOTS))
    sum_so_far, covered, best = 0, 0, (0, 0)
    longest = slots[-1][0]
    for length, events, expected in slots:
        if length == 0 or start + length > file.size:
            continue
        for piece in file.pieces(start + length, start + covered):
            sum_so_far = zlib.crc32(piece, sum_so_far)
        covered = length
        if zlib.crc32(SLOT_FACTS.pack(length, events), sum_so_far) == expected:
            best = (length, events)
    return *best, best[0] == longest
