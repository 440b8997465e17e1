"""Files that only this user's replaydbg may have written: one that is damaged, or of somebody else, is not believed.

They end in a keyed hash, as recordings do (`log/sealed/origin.py`).
"""

from __future__ import annotations

from replaydbg.log.sealed.origin import LONG, MARK_SIZE, OriginMarker, own_key


def marked(data: bytes, kind: bytes) -> bytes | None:
    """Return the bytes with their mark; None: this user has no key.

    `kind` has at most 16 bytes; files of one kind are not taken for those of another.
    """
    key = own_key()
    return None if key is None else data + _mark(key, data, kind)


def unmarked(data: bytes, kind: bytes) -> bytes | None:
    """Return the bytes of which `marked` made these; None: it did not."""
    key, plain = own_key(), data[:-MARK_SIZE]
    return plain if key is not None and plain and data[-MARK_SIZE:] == _mark(key, plain, kind) else None


def _mark(key: bytes, data: bytes, kind: bytes) -> bytes:
    marker = OriginMarker(key, is_long=len(data) >= LONG, person=kind)
    marker.add(data)
    return marker.mark()
