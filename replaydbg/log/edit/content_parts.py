"""Read of long contents, which lie beside a log, what is near their ends and near some places in them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator

from replaydbg.log.entries.leaves import Content

Pieces = Callable[[str], Iterator[bytes]]
"""Returns a section's bytes, in pieces."""

WINDOW = 1 << 13
"""Bytes that are read at each end of a content, and before and behind a place."""

Parts = list[tuple[int, bytes]]
"""A value that a program received or wrote: its parts in order, with their places. A long content lacks some parts."""


class ContentParts:
    """Reads contents, which lie one behind the other: of long ones their two ends, and what is around some places."""

    def __init__(self, pieces: Pieces, places: Iterable[int]) -> None:
        self._pieces = pieces
        self._places = sorted(places)
        self._rest: Iterator[bytes] = iter(())
        self._at, self._held = 0, b""

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
        return [(low, self.read(low, high)) for low, high in spans]

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes of the section between two places; going back reads it anew."""
        if start < self._at or not self._held:
            self._rest, self._at, self._held = self._pieces("content"), 0, b""
        while self._at + len(self._held) < end:
            piece = next(self._rest, b"")
            if not piece:
                break
            drop = max(min(start - self._at, len(self._held)), 0)
            self._held = self._held[drop:] + piece
            self._at += drop
        return self._held[max(start - self._at, 0) : max(end - self._at, 0)]
