"""Mutations of a section `transfers`: of its header, of fields of a slot, and of the order of its slots."""

import struct
from random import Random

from replaydbg.log.entries.logfile import TRANSFERS_HEADER
from replaydbg.log.transfers import SLOT
from tests.fuzz import chunks

_FIELDS = (
    (0, 8),
    (8, 8),
    (16, 8),
    (24, 8),
    (32, 8),
    (40, 4),
    (44, 2),
    (46, 1),
    (47, 1),
    (0, 1),
    (2, 2),
    (4, 4),
    (16, 2),
)
"""Offsets and sizes in a slot, of transfers and of definitions."""


def mutated(data: bytes, rng: Random) -> bytes:
    """Return a mutation whose header says where it ends, most of the time."""
    head, slots = bytearray(data[:TRANSFERS_HEADER]), bytearray(data[TRANSFERS_HEADER:])
    count = len(slots) // SLOT
    way = rng.randrange(10)
    if way == 0 or not count:
        return chunks.mutated(data, rng)
    if way < 7:
        offset, size = rng.choice(_FIELDS)
        at = rng.randrange(count) * SLOT + offset
        value = chunks.number(rng, int.from_bytes(slots[at : at + size], "little"))
        slots[at : at + size] = (value % (1 << 8 * size)).to_bytes(size, "little")
    elif way == 7:
        at = rng.randrange(count) * SLOT
        del slots[at : at + SLOT * rng.choice((1, 2, 5))]
    else:
        source, target = (rng.randrange(count) * SLOT for _ in range(2))
        slots[target:target] = slots[source : source + SLOT]
    end = TRANSFERS_HEADER + len(slots)
    head[16:24] = struct.pack("<Q", chunks.number(rng, end) if rng.randrange(20) == 0 else end)
    return bytes(head + slots)
