"""Mutations of a snapshot's file: its header and its columns, with valid checksums."""

import json
import struct
import zlib
from array import array
from functools import lru_cache
from random import Random
from typing import Any

import zstandard

from replaydbg.heap.storage import raw_snapshot
from replaydbg.heap.storage.stored_columns import DELTAS
from tests.fuzz import chunks, documents

HEAD = struct.Struct("<8sIIQ")
_WIDTHS = {"address": 8, "size": 8, "came": 8, "floats": 8, "string_from": 8, "float_from": 8, "strings": 1}
_BOMB = 16 << 20
_LARGEST = 1 << 20
"""Size in bytes of a column that is parsed: a stored bomb must not become a file of that size."""
_compress = zstandard.ZstdCompressor(level=1).compress


@lru_cache(200)
def _taken_apart(data: bytes) -> tuple[str, tuple[bytes, ...]] | None:
    """Return the header and the uncompressed columns; None if it is not a valid snapshot."""
    try:
        _, _, _, length = HEAD.unpack_from(data)
        text = data[HEAD.size : HEAD.size + length].decode("utf-8")
        at = HEAD.size + length
        columns = []
        for _, _, codec, size, _ in json.loads(text)["columns"]:
            stored = data[at : at + size]
            if codec == "zstd":
                stored = zstandard.ZstdDecompressor().stream_reader(stored).read(_LARGEST + 1)
                if len(stored) > _LARGEST:
                    return None
            columns.append(stored)
            at += size
        return text, tuple(columns)
    except (struct.error, ValueError, TypeError, KeyError, zstandard.ZstdError):
        return None


def mutated(data: bytes, rng: Random) -> bytes:
    """Return a snapshot's file with changes."""
    parts = _taken_apart(data) if not data.startswith(raw_snapshot.MAGIC) else None
    if parts is None or rng.randrange(30) == 0:
        return chunks.mutated(data, rng)
    magic, version, _, _ = HEAD.unpack_from(data)
    header: dict[str, Any] = json.loads(parts[0])
    columns = list(parts[1])
    described = header["columns"]
    if rng.randrange(4) == 0:
        changed = json.loads(documents.as_bytes({**header, "columns": []}))
        header = _object(documents.mutated(documents.as_bytes(changed), rng)) or header
        header["columns"] = described
    else:
        for _ in range(rng.choice((1, 1, 2, 3))):
            _change(columns, described, rng)
    stored = [_stored(plain, row, rng) for plain, row in zip(columns, described, strict=True)]
    if rng.randrange(20) == 0:
        header = _object(documents.mutated(documents.as_bytes(header), rng)) or header
    if rng.randrange(40) == 0:
        version = rng.randrange(4)
    text = documents.as_bytes(header)
    return b"".join([HEAD.pack(magic, version, zlib.crc32(text), len(text)), text, *stored])


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _change(columns: list[bytes], described: list[list[Any]], rng: Random) -> None:
    at = rng.randrange(len(columns))
    name, count = described[at][0], described[at][1]
    width = _WIDTHS.get(name, 4)
    if width == 1 or type(count) is not int or len(columns[at]) != count * width:
        columns[at] = chunks.mutated(columns[at], rng)
        if width == 1:
            described[at][1] = len(columns[at])
        return
    numbers = _numbers(columns[at], count, width)
    _change_numbers(numbers, rng, width, is_rising=name in DELTAS)
    if name in _BY_NODE and rng.randrange(3):
        # The number of nodes is unchanged: else the first check ends it all.
        numbers = array(numbers.typecode, [*numbers, *([0] * count)][:count])
    described[at][1] = len(numbers)
    plain = numbers.tobytes()
    columns[at] = b"".join(plain[byte::width] for byte in range(width))


_BY_NODE = frozenset(("since", "type", "size", "value", "degree", "address", "first_edge", "target", "label"))


def _numbers(plain: bytes, count: int, width: int) -> Any:
    ordered = bytearray(len(plain))
    for byte in range(width):
        ordered[byte::width] = plain[byte * count : (byte + 1) * count]
    return array("Q" if width == 8 else "I", bytes(ordered))


def _change_numbers(numbers: Any, rng: Random, width: int, *, is_rising: bool) -> None:
    most = (1 << 8 * width) - 1
    at = rng.randrange(len(numbers) + 1)
    if at == len(numbers):
        numbers.append(chunks.number(rng) & most)
        return
    match rng.randrange(7):
        case 0:
            del numbers[at]
        case 1:
            numbers.insert(at, chunks.number(rng, numbers[at]) & most)
        case 2:
            other = rng.randrange(len(numbers))
            numbers[at], numbers[other] = numbers[other], numbers[at]
        case 3 if is_rising:
            # A decrease of one difference is added to the next one: all later sums stay the same.
            by = rng.randint(0, numbers[at])
            numbers[at] -= by
            if at + 1 < len(numbers):
                numbers[at + 1] = numbers[at + 1] + by & most
        case 4 if len(numbers) < 2000:
            numbers.extend([rng.choice((0, 1, numbers[at]))] * rng.choice((1, 5, 300)))
        case _:
            numbers[at] = chunks.number(rng, numbers[at]) & most


def _stored(plain: bytes, row: list[Any], rng: Random) -> bytes:
    """Store a column, and describe it; occasionally it becomes a bomb."""
    if rng.randrange(2000) == 0:
        many = rng.choice((1 << 20, _BOMB, 1 << 28))
        stored = _compress(bytes(many))
        row[1:] = [many // _WIDTHS.get(row[0], 4), "zstd", len(stored), zlib.crc32(stored)]
        return stored
    stored = _compress(plain) if rng.randrange(10) == 0 else plain
    row[2:] = ["zstd" if stored is not plain else "raw", len(stored), zlib.crc32(stored)]
    return stored
