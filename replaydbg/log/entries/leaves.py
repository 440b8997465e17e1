"""Where the texts and bytes in a log begin and end: between them is the format's own framing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from replaydbg.classes import NamedTuple
from replaydbg.events.records import Entry, Site
from replaydbg.events.values import ContentRef, Value
from replaydbg.log.coding import encode
from replaydbg.log.coding.decode import Cursor
from replaydbg.log.entries.stream import LogStream

_ANY = 1 << 62


class Leaf(NamedTuple):
    """A text, or bytes, in a log."""

    start: int
    """Its first byte, counted from the first record."""
    data: bytes
    """All of it."""

    @property
    def end(self) -> int:
        """The byte behind its last one."""
        return self.start + len(self.data)


class Leaves:
    """The leaves of one log, in order, and the contents beside it to which it refers."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        """`pieces` begin after the log's header."""
        self.contents: list[tuple[int, int]] = []
        """Of each content to which the log has referred so far, its first byte and the one behind its last."""
        self._stream = _LeafStream(iter(pieces), self.contents)

    def __iter__(self) -> Iterator[Leaf]:
        """Yield the leaves as far as the log can be decoded."""
        for _ in self._stream.records():
            yield from self._stream.found
            self._stream.found.clear()

    def with_contents(self) -> Iterator[Leaf | tuple[int, int]]:
        """Yield the leaves of each record, and behind them the contents to which it refers, as in `contents`."""
        for _ in self._stream.records():
            yield from self._stream.found
            yield from self.contents
            self._stream.found.clear()
            self.contents.clear()


class _LeafCursor(Cursor):
    __slots__ = ("contents", "leaves")

    def __init__(self, contents: list[tuple[int, int]]) -> None:
        super().__init__(b"")
        self.leaves: list[tuple[int, bytes]] = []
        self.contents = contents

    def text(self) -> str:
        found = super().text()
        data = found.encode("utf-8", "surrogatepass")
        self.leaves.append((self.pos - len(data), data))
        return found

    def value(self, depth: int = 0) -> Value:
        tag = self.data[self.pos] if self.pos < len(self.data) else -1
        found = super().value(depth)
        if tag in (encode.BYTES, encode.BYTEARRAY):
            assert isinstance(found, bytes | bytearray)
            self.leaves.append((self.pos - len(found), bytes(found)))
        elif isinstance(found, ContentRef):
            self.contents.append((found.offset, found.offset + found.length))
        return found


class _LeafStream(LogStream):
    """Decodes records for their leaves alone: neither the gates nor limits for foreign files are needed."""

    def __init__(self, pieces: Iterator[bytes], contents: list[tuple[int, int]]) -> None:
        super().__init__(pieces, total=_ANY, stored=_ANY)
        self._builds_events = False
        self._cursor = self._leaves = _LeafCursor(contents)
        self._cursor.types = self._types
        self.found: list[Leaf] = []

    def records(self) -> Iterator[Entry | None]:
        """Yield once for each record; its leaves are in `found`."""
        return self._decode(self._entry)

    def _entry(self, cursor: Cursor) -> Entry | None:
        self._leaves.leaves.clear()  # of a record that broke off at the end of a piece
        begin = cursor.pos
        entry = super()._entry(cursor)
        self.found += [Leaf(self.position + at - begin, data) for at, data in self._leaves.leaves]
        return entry

    def _site(self, cursor: Cursor) -> tuple[Site, int]:
        *_, shape = (cursor.varint() for _ in range(5))
        return Site("", None, None, None, 0), shape
