"""Storage of a column of numbers: split into byte planes and compressed."""

from __future__ import annotations

import zlib
from array import array
from itertools import accumulate, islice
from operator import sub
from typing import Any, Literal

from replaydbg.classes import dataclass
from replaydbg.log.sealed import zstd

Codec = Literal["zstd", "raw"]

DELTAS = frozenset(
    {"address", "first_edge", "string_ends", "gone", "came", "edge_gone", "edge_came", "string_from", "float_from"}
)
"""Increasing columns (mostly those with origins): their differences are stored, starting from zero."""


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """The description of a column in the file."""

    name: str
    count: int
    """Number of values."""
    codec: Codec
    length: int
    """Length in the file, in bytes."""
    crc: int
    """CRC-32 of these bytes."""


_WINDOW_LOG = 27
"""The library's own limit, as a power of two of bytes: a column may be compressed as a whole."""

_SMALL = 1 << 17
"""Size in bytes below which a column is worth a few more milliseconds: it becomes a tenth smaller."""


def store(name: str, column: array[Any]) -> tuple[StoredColumn, bytes]:
    """Return the description of a stored column, and its bytes."""
    width = column.itemsize
    if name in DELTAS and column:
        rises = array(column.typecode, [column[0]])
        rises.extend(map(sub, islice(column, 1, None), column))
        column = rises
    return store_bytes(name, b"".join(column.tobytes()[byte::width] for byte in range(width)), len(column))


def store_bytes(name: str, plain: bytes, count: int) -> tuple[StoredColumn, bytes]:
    """Return the description and the bytes of data that is not a column, or is one with its bytes in order."""
    packed = zstd.compressor(9 if len(plain) < _SMALL else 1)(plain)
    codec: Codec = "zstd" if len(packed) < len(plain) else "raw"
    data = packed if codec == "zstd" else plain
    return StoredColumn(name, count, codec, len(data), zlib.crc32(data)), data


def load(stored: StoredColumn, data: memoryview, typecode: str) -> array[Any]:
    """Return the column stored as `data`. Raises ValueError, with the problem."""
    column: array[Any] = array(typecode)
    width = column.itemsize
    plain = load_bytes(stored, data, stored.count * width)
    ordered = bytearray(len(plain))
    for byte in range(width):
        ordered[byte::width] = plain[byte * stored.count : (byte + 1) * stored.count]
    column.frombytes(ordered)
    if stored.name not in DELTAS:
        return column
    try:
        return array(typecode, accumulate(column))
    except OverflowError:
        raise ValueError(f"the column {stored.name} rises too high") from None


def load_bytes(stored: StoredColumn, data: memoryview, size: int) -> bytes:
    """Return the `size` bytes stored as `data`. Raises ValueError."""
    if zlib.crc32(data) != stored.crc:
        raise ValueError(f"the checksum of {stored.name} does not hold")
    if stored.codec == "zstd":
        try:
            # The claim is checked first: what is refused is not expanded.
            claimed = zstd.content_size(data)
            plain = zstd.expand(data, size + 1, _WINDOW_LOG) if claimed == size else b""
        except ValueError:
            raise ValueError(f"the column {stored.name} cannot be decompressed") from None
    else:
        plain = bytes(data)
    if len(plain) != size:
        raise ValueError(f"the column {stored.name} has a different length than declared")
    return plain
