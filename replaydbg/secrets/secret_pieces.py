"""Pieces of secrets, which are masked at their places: nobody could tell elsewhere what short ones belong to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from replaydbg.secrets.secret_values import SHORTEST

LONG_PIECE = 8
"""Bytes of a piece that is masked wherever it is, also if it has nothing but letters."""
PART = SHORTEST - 1
"""The most bytes of the parts in which pieces are masked."""


def is_long_piece(piece: bytes) -> bool:
    """Return whether a piece of a secret is masked wherever it is; a shorter one would be found everywhere."""
    return len(piece) >= LONG_PIECE or (len(piece) > PART and not piece.isalpha())


def pieces_of(patches: Iterable[tuple[int, bytes]]) -> Iterator[bytes]:
    """Yield the pieces of secrets that were masked in short parts, out of what was overwritten in a section."""
    piece, end = b"", 0
    for at, data in sorted(patches):
        if len(data) > PART:
            continue
        if at != end:
            yield piece
            piece = b""
        piece, end = piece + data, at + len(data)
    yield piece


def short_parts(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the parts in which a piece of a secret is masked: what is masked and longer is a secret of its own."""
    return ((each, min(each + PART, end)) for each in range(start, end, PART))
