"""Pieces of secrets, which are masked at their places: nobody could tell elsewhere what short ones belong to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from replaydbg.classes import NamedTuple
from replaydbg.secrets.secret_values import SHORTEST

LONG_PIECE = 8
"""Bytes of a piece that is masked wherever it is, also if it has nothing but letters."""
ENOUGH = 6
"""Bytes of a beginning, or an end, that are a piece wherever they are: fewer are there by chance too often."""
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


class EndPiece(NamedTuple):
    """A piece of a form at the beginning or the end of a value, or all of the value."""

    at: int
    """Its first byte in the value."""
    form: bytes
    start: int
    """The piece is `form[start:end]`."""
    end: int


def without_longer(forms: Iterable[bytes]) -> set[bytes]:
    """Return the forms that begin with no other one.

    Where a secret is at the end of a value, what the next value begins with may go on with it, or be something else:
    then the end of both together is no piece of a secret by itself.
    """
    found: list[bytes] = []
    for form in sorted(forms):
        if not found or not form.startswith(found[-1]):
            found.append(form)
    return set(found)


def end_pieces(forms: Iterable[bytes], ends: Collection[bytes], data: bytes) -> Iterator[EndPiece]:
    """Yield what a value ends with of the beginning of each form, and begins with of its end, if it has six bytes.

    `ends`: the forms whose ends are looked for.
    """
    for form in forms:
        low = max(len(data) - len(form) + 1, 0)
        while (low := data.find(form[:ENOUGH], low)) >= 0:
            if form.startswith(data[low:]):
                yield EndPiece(low, form, 0, len(data) - low)
                break
            low += 1
        if form not in ends:
            continue
        high = min(len(form) - 1, len(data))
        while (found := data.rfind(form[-ENOUGH:], 0, high)) >= 0:
            high = found + ENOUGH
            if form.endswith(data[:high]):
                yield EndPiece(0, form, len(form) - high, len(form))
                break
            high -= 1
        if is_long_piece(data) and len(data) < len(form) and (inside := form.find(data)) >= 0:
            yield EndPiece(0, form, inside, inside + len(data))
