"""Put back what was overwritten in sections. Pure Python: any machine opens recordings."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object

MASKED, SECRETS = "masked", "secrets"
"""The names of the sections of a recording about its masks: where they are, and what was there."""

Patches = dict[str, list[tuple[int, bytes]]]
"""Of each section: where something was overwritten, in order and without overlaps, and the bytes that were there."""


class Masking(Protocol):
    """Overwrites secrets in sections."""

    @property
    def patches(self) -> Patches:
        """The bytes that were overwritten so far."""
        ...

    def pieces(self, section: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the pieces of a section with its secrets masked; each has its length."""
        ...


def patched(pieces: Iterable[bytes], patches: Sequence[tuple[int, bytes]], start: int = 0) -> Iterator[bytes]:
    """Yield pieces, which begin at `start` of their section, with what was overwritten put back."""
    offset = start
    starts = [at for at, _ in patches]
    for piece in pieces:
        end = offset + len(piece)
        first = max(bisect_left(starts, offset) - 1, 0)
        whole = None
        for at, data in patches[first : bisect_left(starts, end)]:
            low, high = max(at, offset), min(at + len(data), end)
            if low < high:
                whole = whole if whole is not None else bytearray(piece)
                whole[low - offset : high - offset] = data[low - at : high - at]
        yield piece if whole is None else bytes(whole)
        offset = end
