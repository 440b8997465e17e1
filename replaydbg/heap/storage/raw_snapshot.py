"""Read a snapshot as the native core writes it: columns one after the other, as they are in memory."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable

from replaydbg.errors import Corrupt
from replaydbg.heap.snapshot import Root, Snapshot, Strings, Taken
from replaydbg.heap.storage.validation import check, check_texts

MAGIC = b"RDBGHEAP"
_HEAD = struct.Struct("<8s12Q")
_COLUMNS = "QQIIIIIIdIBIBIIBBB"
"""The type of each part, `B` for text: see heap_write.c."""
_LENGTHS = struct.Struct(f"<{len(_COLUMNS)}Q")


_TEXTS = (10, 12, 15, 16, 17)
"""Which parts are texts."""


def masked_raw(data: bytes, mask: Callable[[bytes], bytes]) -> bytes:
    """Return a raw snapshot with its texts masked by `mask`, which keeps lengths; anything else unchanged.

    Its numbers can look like texts in UTF-32.
    """
    if len(data) < _HEAD.size + _LENGTHS.size or not data.startswith(MAGIC):
        return data
    masked, at = bytearray(data), _HEAD.size + _LENGTHS.size
    for number, length in enumerate(_LENGTHS.unpack_from(data, _HEAD.size)):
        if number in _TEXTS:
            masked[at : at + length] = mask(data[at : at + length])
        at += length + (-length % 8)
    return bytes(masked)


def _parts(data: memoryview, path: str) -> list[memoryview]:
    lengths = _LENGTHS.unpack_from(data, _HEAD.size)
    at = _HEAD.size + _LENGTHS.size
    parts = []
    for length, code in zip(lengths, _COLUMNS, strict=True):
        if length > len(data) - at or length % array(code).itemsize:
            raise Corrupt(path, "a snapshot's column is cut off")
        parts.append(data[at : at + length])
        at += length + (-length % 8)
    return parts


def cut_sentences(nodes: int, edges: int, items: int, containers: int, *limits: int) -> tuple[str, ...]:
    """Return the sentences for a snapshot cut by limits: references, items and containers left out."""
    most_nodes, most_edges, most_items = limits
    sentences = []
    if nodes:
        sentences.append(f"The snapshot is limited to {most_nodes:,} objects: {nodes:,} references lead to others.")
    if edges:
        sentences.append(f"The snapshot is limited to {most_edges:,} references: {edges:,} are left out.")
    if containers:
        sentences.append(
            f"Of {containers:,} large container{'s' if containers > 1 else ''} only the first {most_items:,} items "
            f"are in the snapshot: {items:,} are left out."
        )
    return tuple(sentences)


def _text(part: memoryview) -> str:
    return bytes(part).decode("utf-8", "replace")


def _column(code: str, part: memoryview) -> array[int]:
    column: array[int] = array(code)
    column.frombytes(part)
    return column


def read_raw(
    data: bytes | bytearray | memoryview, path: str = "snapshot", *, run: str = "", is_trusted: bool = False
) -> Snapshot:
    """Return the snapshot in `data`; `path` is for messages, `run` for `Taken.run`. Raises Corrupt.

    With `is_trusted`, for a snapshot that the core has just written, the numbers in the columns are not checked.
    """
    view = memoryview(data).cast("B")
    if len(view) < _HEAD.size + _LENGTHS.size:
        raise Corrupt(path, "a snapshot's head is cut off")
    magic, version, number, event, step, time_ns, *cuts = _HEAD.unpack_from(view)
    if magic != MAGIC or version != 1:
        raise Corrupt(path, "it is not a snapshot of this version")
    parts = _parts(view, path)
    address, size, since, kind, value, first_edge, target, label = (
        _column(code, part) for code, part in zip(_COLUMNS, parts[:8], strict=False)
    )
    floats: array[float] = array("d")
    floats.frombytes(parts[8])
    strings, types, root_labels = (
        Strings(bytes(text), _column("I", ends))
        for ends, text in ((parts[9], parts[10]), (parts[11], parts[12]), (parts[14], parts[15]))
    )
    if not is_trusted:
        check_texts(strings, types, root_labels, path=path)
    root_nodes = _column("I", parts[13])
    if len(root_nodes) != len(root_labels):
        raise Corrupt(path, "a snapshot's roots have no names")
    snapshot = Snapshot(
        taken=Taken(number, event, step, _text(parts[16]), _text(parts[17]), time_ns, run),
        address=address,
        since=since,
        type=kind,
        size=size,
        value=value,
        first_edge=first_edge,
        target=target,
        label=label,
        roots=tuple(Root(root_labels[i], node) for i, node in enumerate(root_nodes)),
        types=tuple(types),
        strings=strings,
        floats=floats,
        cut=cut_sentences(*cuts),
    )
    if not is_trusted:
        check(snapshot, path)
    return snapshot
