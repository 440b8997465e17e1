"""The file of a snapshot: written compactly, and read without trust. Data only: reading one runs nothing.

docs/reference/heap-format.md describes it.
"""

from __future__ import annotations

import json
import struct
import zlib
from array import array
from dataclasses import asdict, astuple
from typing import Any

from replaydbg.errors import Corrupt, NewerFormat
from replaydbg.heap.check import check_numbers
from replaydbg.heap.columns import Stored, load, load_bytes, store, store_bytes
from replaydbg.heap.snapshot import Root, Snapshot, Strings, Taken

MAGIC = b"RDBGSNAP"
VERSION = 1
MEMORY_LIMIT = 2 << 30
"""Bytes that the columns of a snapshot may take in memory; the largest that is taken by default needs half of it."""

_HEAD = struct.Struct("<8sIIQ")
_HEADER_LIMIT = 64 << 20
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


def pack(snapshot: Snapshot) -> bytes:
    """Return the file of a snapshot."""
    parts = [store(name, _column(snapshot, name)) for name in _COLUMNS]
    texts = snapshot.strings.data
    parts.append(store_bytes(_TEXTS, texts, len(texts)))
    header = {
        "taken": asdict(snapshot.taken),
        "types": snapshot.types,
        "roots": [list(root) for root in snapshot.roots],
        "cut": snapshot.cut,
        "columns": [list(astuple(stored)) for stored, _ in parts],
    }
    text = json.dumps(header).encode()
    head = _HEAD.pack(MAGIC, VERSION, zlib.crc32(text), len(text))
    return b"".join([head, text, *(data for _, data in parts)])


def _column(snapshot: Snapshot, name: str) -> array[Any]:
    column: array[Any] = snapshot.strings.ends if name == "string_ends" else getattr(snapshot, name)
    return column


def unpack(data: bytes | bytearray | memoryview, path: str, *, limit: int = MEMORY_LIMIT) -> Snapshot:
    """Return the snapshot in the file `data`; `path` is for messages. Raises Corrupt, NewerFormat."""
    view = memoryview(data).cast("B")
    try:
        return _unpack(view, path, limit)
    except ValueError as error:
        raise Corrupt(path, str(error)) from None


def read_taken(begin: bytes, path: str) -> Taken | None:
    """Return when the snapshot was taken whose file begins so; None if more of it is needed. Raises Corrupt."""
    length = _HEAD.unpack_from(begin)[3] if len(begin) >= _HEAD.size else 0
    if len(begin) - _HEAD.size < length <= _HEADER_LIMIT:
        return None
    try:
        return _taken(_header(memoryview(begin), path)[0])
    except ValueError as error:
        raise Corrupt(path, str(error)) from None


def _unpack(view: memoryview, path: str, limit: int) -> Snapshot:
    header, at = _header(view, path)
    types, cut = _texts(header, "types"), _texts(header, "cut")
    parts: dict[str, tuple[Stored, memoryview]] = {}
    total = 0
    for stored in _stored(header):
        parts[stored.name] = stored, view[at : at + stored.length]
        at += stored.length
        total += stored.count * (1 if stored.name == _TEXTS else array(_COLUMNS[stored.name]).itemsize)
    if at != len(view):
        raise ValueError("the snapshot is cut off, or something follows it")
    if total > limit:
        raise ValueError(f"the snapshot claims to need {total:,} bytes, and {limit:,} are the limit")
    columns = {name: load(*parts[name], code) for name, code in _COLUMNS.items()}
    texts = load_bytes(*parts[_TEXTS], parts[_TEXTS][0].count)
    snapshot = Snapshot(
        taken=_taken(header),
        address=columns["address"],
        since=columns["since"],
        type=columns["type"],
        size=columns["size"],
        value=columns["value"],
        first_edge=columns["first_edge"],
        target=columns["target"],
        label=columns["label"],
        roots=_roots(header),
        types=types,
        strings=Strings(texts, columns["string_ends"]),
        floats=columns["floats"],
        cut=cut,
    )
    problem = check_numbers(snapshot, is_summed=True)
    if problem:
        raise ValueError(problem)
    return snapshot


# ---- the header ----


def _header(view: memoryview, path: str) -> tuple[dict[str, Any], int]:
    if len(view) < _HEAD.size:
        raise ValueError("it is too short for a snapshot")
    magic, version, crc, length = _HEAD.unpack_from(view)
    if magic != MAGIC:
        raise ValueError("it does not begin like a snapshot")
    if version > VERSION:
        raise NewerFormat(path, version, VERSION)
    if version < 1 or length > min(len(view) - _HEAD.size, _HEADER_LIMIT):
        raise ValueError("the snapshot's header is cut off")
    text = bytes(view[_HEAD.size : _HEAD.size + length])
    if zlib.crc32(text) != crc:
        raise ValueError("the checksum of the snapshot's header does not hold")
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("the snapshot's header is not JSON") from None
    if not isinstance(header, dict):
        raise ValueError("the snapshot's header is not a JSON object")
    return header, _HEAD.size + length


def _list(header: dict[str, Any], name: str) -> list[Any]:
    found = header.get(name)
    if not isinstance(found, list):
        raise ValueError(f"the snapshot's header has no list of {name}")
    return found


def _texts(header: dict[str, Any], name: str) -> tuple[str, ...]:
    found = _list(header, name)
    if not all(isinstance(each, str) for each in found):
        raise ValueError(f"the snapshot's {name} are not texts")
    return tuple(found)


def _is_count(number: object) -> bool:
    return type(number) is int and 0 <= number < 1 << 64


def _stored(header: dict[str, Any]) -> list[Stored]:
    found = []
    for each in _list(header, "columns"):
        if not isinstance(each, list) or len(each) != 5:
            raise ValueError("the snapshot's columns are not described")
        name, count, codec, length, crc = each
        if codec not in ("zstd", "raw") or not all(map(_is_count, (count, length, crc))):
            raise ValueError("the snapshot's columns are not described")
        found.append(Stored(name, count, codec, length, crc))
    if [each.name for each in found] != [*_COLUMNS, _TEXTS]:
        raise ValueError("the snapshot has other columns than it should have")
    return found


def _roots(header: dict[str, Any]) -> tuple[Root, ...]:
    found = []
    for each in _list(header, "roots"):
        if not isinstance(each, list) or len(each) != 2 or not isinstance(each[0], str) or not _is_count(each[1]):
            raise ValueError("the snapshot's roots are not described")
        found.append(Root(*each))
    return tuple(found)


def _taken(header: dict[str, Any]) -> Taken:
    said = header.get("taken")
    expected = asdict(Taken())
    if not isinstance(said, dict) or said.keys() != expected.keys():
        raise ValueError("the snapshot does not say when it was taken")
    for name, default in expected.items():
        if not isinstance(said[name], str) if isinstance(default, str) else not _is_count(said[name]):
            raise ValueError("the snapshot does not say when it was taken")
    return Taken(**said)
