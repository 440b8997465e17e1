"""Read parts of contents, which lie beside a log, one behind the other."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from replaydbg.log.entries.leaves import Content
from replaydbg.log.files import PIECE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    class Pieces(Protocol):
        """Returns a section's bytes, in pieces."""

        def __call__(self, name: str, start: int = 0, /) -> Iterator[bytes]:
            """Return those from `start` on."""


WINDOW = 1 << 13
"""Bytes that are read at each end of a content, and before and behind a place."""

Parts = list[tuple[int, bytes]]
"""A value that a program received or wrote: its parts in order, with their places. A long content lacks some parts."""
_MOST_BLOCKS = 16
"""Blocks of 1 MiB that are kept: so many files can be read in turn."""


class Contents:
    """Reads any part of them. What was read lately is kept: they are often read in turn."""

    def __init__(self, pieces: Pieces) -> None:
        self.pieces = pieces
        """Of a recording that is written, it can be replaced by one that returns more."""
        self._blocks: dict[int, bytes] = {}
        """By their number; the one that was read last is the last."""

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes of the section between two places, fewer where it ends before."""
        found = []
        for number in range(start // PIECE, -(-end // PIECE)):
            first = number * PIECE
            low, high = max(start - first, 0), min(end - first, PIECE)
            found.append(self._block(number, high)[low:high])
        return b"".join(found)

    def _block(self, number: int, wanted: int) -> bytes:
        block = self._blocks.pop(number, b"")
        if len(block) < wanted:
            gathered = bytearray()
            for piece in self.pieces("content", number * PIECE):
                gathered += piece
                if len(gathered) >= PIECE:
                    break
            block = bytes(gathered[:PIECE])
        while len(self._blocks) >= _MOST_BLOCKS:
            del self._blocks[next(iter(self._blocks))]
        self._blocks[number] = block
        return block


class ContentParts:
    """Reads of long contents their two ends, and what is around some places."""

    def __init__(self, pieces: Pieces, places: Iterable[int]) -> None:
        self._contents = Contents(pieces)
        self._places = sorted(places)

    def parts(self, content: Content) -> Parts:
        """Return the parts of a content, each with its place."""
        start, end = content.start, content.end
        spans = [(start, min(start + WINDOW, end))]
        inside = self._places[bisect_left(self._places, start) : bisect_left(self._places, end)]
        around = [(max(each - WINDOW, start), min(each + WINDOW, end)) for each in inside]
        for low, high in [*around, (max(end - WINDOW, start), end)]:
            if low <= spans[-1][1]:
                spans[-1] = spans[-1][0], max(high, spans[-1][1])
            else:
                spans.append((low, high))
        return [(low, self._contents.read(low, high)) for low, high in spans]
