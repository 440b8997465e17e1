"""Storage of a column of numbers: split into byte planes and compressed."""

from __future__ import annotations

import zlib
from array import array
from dataclasses import dataclass
from itertools import accumulate, islice
from operator import sub
from typing import Any, Literal

import zstandard

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
    packed = zstandard.ZstdCompressor(level=9 if len(plain) < _SMALL else 1).compress(plain)
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
            # Checked first: the decompressor would take as much memory as the data claims.
            if zstandard.frame_content_size(data) != size:
                raise ValueError(f"the column {stored.name} has a different length than declared")
            return zstandard.ZstdDecompressor().decompress(data, max_output_size=size)
        except zstandard.ZstdError:
            raise ValueError(f"the column {stored.name} cannot be decompressed") from None
    if len(data) != size:
        raise ValueError(f"the column {stored.name} has a different length than declared")
    return bytes(data)


# ---- prediction of a later snapshot's columns: the same functions as in native/graph/changes.c ----


def degrees(first_edge: array[int]) -> array[int]:
    """Return the number of edges of each node."""
    return array("I", map(sub, islice(first_edge, 1, None), first_edge))


def other_bits(one: array[Any], other: array[Any]) -> bytes:
    """Return the bits that differ between two columns. Raises ValueError if they are not equally long."""
    length = len(one) * one.itemsize
    if len(other) * other.itemsize != length:
        raise ValueError("the snapshot's columns are not equally long")
    bits = int.from_bytes(one.tobytes(), "little") ^ int.from_bytes(other.tobytes(), "little")
    return bits.to_bytes(length, "little")


def renumbered(column: array[int], table: array[int], mask: int, kind: int, shift: int) -> array[int]:
    """Return a column whose number above the lowest `shift` bits is replaced by its entry in the table.

    Only where the bits under `mask` are `kind`. Raises IndexError.
    """
    low = (1 << shift) - 1
    changed = {
        each: table[each >> shift] << shift | each & low if each & mask == kind else each for each in set(column)
    }
    try:
        return array("I", map(changed.__getitem__, column))
    except OverflowError:
        raise IndexError("a number leads out of its table") from None
