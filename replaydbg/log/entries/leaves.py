"""Where the texts and bytes in a log begin and end: between them is the format's own framing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from replaydbg.classes import NamedTuple
from replaydbg.native import compiled

DEFINED, RECORDED, CONTENT = range(3)
"""Kinds of what is found: a leaf of a definition, a leaf of any other record, a reference to a content."""


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from replaydbg.native._leaves import Sieve, Walker

    T = TypeVar("T")

Sifted = tuple[int, int, bytes, int, int, int, int]
"""The number of a stream, -1 for that of all places; that of the stream that it begins as, or -2; what is kept of the
stream, and where the last value begins in that; then a value of it: `RECORDED` or `CONTENT`, its first byte, and the
one behind its last."""


class Leaf(NamedTuple):
    """A text, or bytes, in a log."""

    start: int
    """Its first byte, counted from the first record."""
    data: bytes
    """All of it."""
    gate: int = 0
    """The number of the gate of its call; 0: it is none of a call's outcome."""

    @property
    def end(self) -> int:
        """The byte behind its last one."""
        return self.start + len(self.data)


class Content(NamedTuple):
    """A content beside a log, where the log refers to it."""

    start: int
    """Its first byte in the section."""
    end: int
    """The byte behind its last one."""
    gate: int = 0
    """As of a leaf."""


class LeafReader:
    """Reads a log that comes piece by piece."""

    def __init__(self, first: int = 0) -> None:
        """Records that end before byte `first`, counted from the first one, are skipped."""
        # This module can be imported where nothing is compiled.
        self._walker: Walker = compiled("_leaves", "Walker")(first)
        self._parts: list[bytes] = []
        self._have = 0
        """Bytes of these parts, which begin with the first record that is not whole."""
        self._wanted = 1
        """So many of them are waited for; 0: the log cannot be read any further."""
        self.position = 0
        """Where these begin, counted from the first record."""

    def add(self, piece: bytes) -> Iterator[Leaf | Content]:
        """Take the next piece, the first one from behind the log's header; yield what is in records that are whole now.

        Nothing that is empty is yielded. From damage on, nothing is yielded any more.
        """
        data, position, found = self._taken(piece, self._walker.walk)
        for kind, gate, _, _, _, first, last in found:
            if kind == CONTENT:
                yield Content(first, last, gate)
            elif first < last:
                yield Leaf(first, data[first - position : last - position], gate)

    def sifted(self, piece: bytes, sieve: Sieve, hints: list[int]) -> tuple[bytes, int, list[Sifted]]:
        """Take the next piece; return the data of whole records, where it begins, and what the sieve reports of them.

        `hints` are where hints begin in the log.
        """
        return self._taken(piece, lambda data: self._walker.sift(data, sieve, hints))

    def _taken(self, piece: bytes, walk: Callable[[bytes], tuple[list[T], int, int]]) -> tuple[bytes, int, list[T]]:
        if not self._wanted:
            return b"", self.position, []
        self._parts.append(piece)
        self._have += len(piece)
        if self._have < self._wanted:
            return b"", self.position, []
        data, position = b"".join(self._parts), self.position
        found, end, needed = walk(data)
        left = data[end:]
        self._parts, self._have, self.position = [left], len(left), position + end
        # Doubled each time, or a long record would be walked over again for each piece of it.
        self._wanted = max(needed, 2 * len(left)) if needed else 0
        return data, position, found

    def wait_for_no_more(self) -> None:
        """Let the next call look at all that is there, though the last record was not whole when it had less."""
        if 0 < self._have < self._wanted:
            self._wanted = self._have


def leaves(pieces: Iterable[bytes], first: int = 0) -> Iterator[Leaf | Content]:
    """Yield the leaves of a log and the contents to which it refers, in order, as far as the log can be read.

    `pieces` begin behind the log's header; records that end before byte `first` of them are skipped.
    """
    reader = LeafReader(first)
    for piece in pieces:
        yield from reader.add(piece)
    reader.wait_for_no_more()
    yield from reader.add(b"")
