"""The file of a snapshot: written compactly, and read without trust. Data only: reading one runs no code.

docs/reference/heap-format.md describes it.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from typing import Any

from replaydbg.classes import dataclass
from replaydbg.errors import Corrupt, NewerFormat
from replaydbg.heap.snapshot import Snapshot, Strings, Taken
from replaydbg.heap.storage.delta_coding import differences, restored
from replaydbg.heap.storage.snapshot_header import Link, SnapshotHeader, decode_header, encode_header
from replaydbg.heap.storage.stored_columns import StoredColumn, load, load_bytes, store, store_bytes
from replaydbg.heap.storage.validation import check_numbers

MAGIC = b"RDBGSNAP"
VERSION = 2
"""Version of files that are delta-coded against an earlier snapshot; a self-contained file has version 1."""
MEMORY_LIMIT = 2 << 30
"""Memory limit for the columns of a snapshot; the largest snapshot within the default limits needs half of it."""
ANY_FILE = 64 << 20
"""Memory limit in bytes for the columns of any snapshot, however small its file is."""
UNIFORM = 8192
"""Maximum ratio of memory to stored bytes, up to MOST_UNIFORM: two million equal tuples in a chain reach 2,700, and
the most uniform heap possible 4,300.
"""
MOST_UNIFORM = 256 << 20
RATIO = 512
"""The same for larger ones: two million objects of one class in a list reach 380, a usual heap reaches 70."""
LONGEST_CHAIN = 8
"""Maximum number of snapshots that must be read for one, including the self-contained one at the end."""

_HEAD = struct.Struct("<8sIIQ")
HEAD_SIZE = _HEAD.size
"""Length in bytes of the part before the header."""
_HEADER_LIMIT = 64 << 20
_WEIGHTS = {"string_from": 64, "string_ends": 16, "float_from": 40, "floats": 16}
"""Bytes of memory for each number of these columns during decoding: a text is an object then."""
_COLUMNS = {
    "address": "Q",
    "since": "I",
    "type": "I",
    "size": "Q",
    "value": "I",
    "first_edge": "I",
    "target": "I",
    "label": "I",
    "floats": "d",
    "string_ends": "I",
}
_TEXTS = "strings"
_CHANGES = {
    "gone": "I",
    "came": "Q",
    "since": "I",
    "type": "I",
    "size": "Q",
    "value": "I",
    "degree": "I",
    "edge_gone": "I",
    "edge_came": "I",
    "target": "I",
    "label": "I",
    "string_from": "q",
    "float_from": "q",
    "floats": "d",
    "string_ends": "I",
}


@dataclass(frozen=True, slots=True)
class DeltaBase:
    """An earlier snapshot against which another one is delta-coded."""

    snapshot: Snapshot
    mark: int
    """See `Link.mark`."""
    stored: int = 0
    """Bytes of its file and of those against which it is delta-coded; 0: it was not read from a file."""


def most_claimed(stored: int) -> int:
    """Return how many bytes the columns of a snapshot may take if its chain has `stored` bytes."""
    return max(ANY_FILE, min(UNIFORM * stored, MOST_UNIFORM), RATIO * stored)


def pack(snapshot: Snapshot, base: DeltaBase | None = None) -> bytes:
    """Return the file of a snapshot; with `base`, an earlier one of its run, as the difference from that."""
    columns = differences(snapshot, base.snapshot) if base else {name: _column(snapshot, name) for name in _COLUMNS}
    parts = [store(name, columns[name]) for name in (_CHANGES if base else _COLUMNS)]
    texts = columns[_TEXTS].tobytes() if base else snapshot.strings.data
    parts.append(store_bytes(_TEXTS, texts, len(texts)))
    link = Link(base.snapshot.taken.number, base.mark) if base else None
    text = encode_header(snapshot, (stored for stored, _ in parts), link)
    head = _HEAD.pack(MAGIC, VERSION if base else 1, zlib.crc32(text), len(text))
    return b"".join([head, text, *(data for _, data in parts)])


def memory_of(snapshot: Snapshot) -> int:
    """Return how many bytes its columns take. Up to `ANY_FILE` it can be read from a file of any size."""
    columns = sum(len(_column(snapshot, name)) * _weight(name, _COLUMNS) for name in _COLUMNS)
    return columns + len(snapshot.strings.data)


def _column(snapshot: Snapshot, name: str) -> array[Any]:
    column: array[Any] = snapshot.strings.ends if name == "string_ends" else getattr(snapshot, name)
    return column


def unpack(
    data: bytes | bytearray | memoryview,
    path: str,
    *,
    limit: int = MEMORY_LIMIT,
    base: DeltaBase | None = None,
    stored: int | None = None,
) -> Snapshot:
    """Return the snapshot in the file `data`; `path` is for messages. Raises Corrupt, NewerFormat.

    `base` is the snapshot against which the file is coded, if any; see `read_begin`. `stored` is the size of the file
    in the recording, if that is smaller.
    """
    view = memoryview(data).cast("B")
    there = min(len(view), len(view) if stored is None else stored) + (base.stored if base is not None else 0)
    try:
        return _unpack(view, path, limit, base, there)
    except (IndexError, OverflowError):
        raise Corrupt(path, "its delta does not fit the previous snapshot") from None
    except ValueError as error:
        raise Corrupt(path, str(error)) from None


def mark_of(data: bytes | bytearray | memoryview) -> int:
    """Return the mark by which a delta-coded file identifies the file `data` as its base."""
    mark: int = _HEAD.unpack_from(data)[2]
    return mark


def read_begin(begin: bytes, path: str) -> tuple[Taken, Link | None] | None:
    """Return when a snapshot was taken, and its base if it is delta-coded, from the beginning of its file.

    None if more of the file is needed. Raises Corrupt.
    """
    length = _HEAD.unpack_from(begin)[3] if len(begin) >= _HEAD.size else 0
    if len(begin) - _HEAD.size < length <= _HEADER_LIMIT:
        return None
    try:
        header = _header(memoryview(begin), path)[0]
        return header.taken, header.base
    except ValueError as error:
        raise Corrupt(path, str(error)) from None


def _unpack(view: memoryview, path: str, limit: int, base: DeltaBase | None, there: int) -> Snapshot:
    header, at = _header(view, path)
    link, taken = header.base, header.taken
    if link:
        _check_link(link, taken, base)
    codes = _CHANGES if link else _COLUMNS
    types, cut = header.types, header.cut
    parts: dict[str, tuple[StoredColumn, memoryview]] = {}
    total = 0
    for stored in header.columns([*codes, _TEXTS]):
        parts[stored.name] = stored, view[at : at + stored.length]
        at += stored.length
        total += stored.count * _weight(stored.name, codes)
    if at != len(view):
        raise ValueError("the snapshot is cut off, or something follows it")
    most = min(limit, most_claimed(there))
    if total > most:
        raise ValueError(
            f"the snapshot claims to need {total:,} bytes; the limit for {there:,} stored bytes is {most:,}"
        )
    problem = _problem_of_counts({name: stored.count for name, (stored, _) in parts.items()})
    if problem:
        raise ValueError(problem)
    columns = {name: load(*parts[name], code) for name, code in codes.items()}
    texts = load_bytes(*parts[_TEXTS], parts[_TEXTS][0].count)
    if link and base:
        columns = restored({**columns, _TEXTS: array("B", texts)}, base.snapshot, types, most)
        texts = columns[_TEXTS].tobytes()
    snapshot = Snapshot(
        taken=taken,
        address=columns["address"],
        since=columns["since"],
        type=columns["type"],
        size=columns["size"],
        value=columns["value"],
        first_edge=columns["first_edge"],
        target=columns["target"],
        label=columns["label"],
        roots=header.roots,
        types=types,
        strings=Strings(texts, columns["string_ends"]),
        floats=columns["floats"],
        cut=cut,
    )
    problem = check_numbers(snapshot, is_summed=True)
    if problem:
        raise ValueError(problem)
    return snapshot


def _problem_of_counts(counts: dict[str, int]) -> str:
    """Return the problem with the lengths of columns; empty: they are consistent.

    Checked before memory is allocated.
    """
    nodes, edges = counts["since"], counts["target"]
    if not counts["type"] == counts["size"] == counts["value"] == nodes or counts["label"] != edges:
        return "the snapshot's columns differ in length"
    if "came" in counts:
        fits = counts["degree"] == nodes and counts["came"] <= nodes and counts["edge_came"] <= edges
        fits = fits and counts["string_ends"] <= counts["string_from"] and counts["floats"] <= counts["float_from"]
    else:
        fits = counts["address"] == nodes and counts["first_edge"] == nodes + 1
    return "" if fits else "the snapshot's columns differ in length"


def _weight(name: str, codes: dict[str, str]) -> int:
    return 1 if name == _TEXTS else _WEIGHTS.get(name) or array(codes[name]).itemsize


def claim(begin: bytes, path: str) -> int:
    """Return how many bytes the columns of a snapshot need, from the beginning of its file. Raises Corrupt."""
    try:
        header = _header(memoryview(begin), path)[0]
        codes = _CHANGES if header.base else _COLUMNS
        return sum(stored.count * _weight(stored.name, codes) for stored in header.columns([*codes, _TEXTS]))
    except ValueError as error:
        raise Corrupt(path, str(error)) from None


# ---- the header ----


def _header(view: memoryview, path: str) -> tuple[SnapshotHeader, int]:
    if len(view) < _HEAD.size:
        raise ValueError("it is too short for a snapshot")
    magic, version, crc, length = _HEAD.unpack_from(view)
    if magic != MAGIC:
        raise ValueError("its first bytes are not those of a snapshot")
    if version > VERSION:
        raise NewerFormat(path, version, VERSION)
    if version < 1 or length > min(len(view) - _HEAD.size, _HEADER_LIMIT):
        raise ValueError("the snapshot's header is cut off")
    text = bytes(view[_HEAD.size : _HEAD.size + length])
    if zlib.crc32(text) != crc:
        raise ValueError("the checksum of the snapshot's header does not hold")
    return decode_header(text), _HEAD.size + length


def _check_link(link: Link, taken: Taken, base: DeltaBase | None) -> None:
    if base is None:
        raise ValueError(f"the snapshot is encoded against number {link.number}, which is missing")
    before = base.snapshot.taken
    if (before.number, base.mark) != (link.number, link.mark) or before.run != taken.run:
        raise ValueError(f"the snapshot is encoded against another number {link.number} than is there")
