"""Follow what a program reads from the standard input that it began with: how far it is, and which bytes it has had.

A program that is resumed gets another standard input. If that is the same file, it must go on after these bytes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from replaydbg.events.records import Event
from replaydbg.events.values import ContentRef
from replaydbg.resources.event_values import byte_count, items, whole
from replaydbg.resources.kinds import InputPart, StandardInput


@dataclass(slots=True)
class _Stretch:
    """Bytes that were read one after the other, and are in the log itself."""

    offset: int
    length: int = 0
    digest: hashlib.blake2b = field(default_factory=hashlib.blake2b)

    def add(self, data: bytes) -> None:
        self.length += len(data)
        self.digest.update(data)

    def frozen(self) -> InputPart:
        return InputPart(self.offset, self.length, self.digest.digest())


@dataclass(slots=True)
class InputFacts:
    """The standard input while the log is read."""

    position: int = 0
    """The offset of the next byte; of a file whose first offset is not recorded, from the first byte that was read."""
    parts: list[_Stretch | InputPart] = field(default_factory=list)
    count: int = 0
    own: int = 0
    """How many bytes the process itself has read; the rest was read before it was forked."""
    is_known: bool = True
    """Whether the log has all bytes that were read."""

    def read(self, event: Event) -> None:
        """Follow a call that read at the offset and moved it."""
        data = event.outcome if event.filled is None else event.filled
        if pieces := items(data):  # of several buffers
            data = b"".join(each for each in pieces if isinstance(each, bytes))
        length = byte_count(event.outcome) or 0
        if isinstance(data, bytes) and len(data) == length:
            self._add(data)
        elif isinstance(data, ContentRef) and data.length == length:
            self.parts.append(InputPart(self.position, length, data))
        else:
            self.is_known = self.is_known and not length
        self._moved(length)

    def copied(self, count: int) -> None:
        """Follow a call by which the kernel copied bytes from it to somewhere else."""
        self.is_known = self.is_known and not count
        self._moved(count)

    def seek(self, event: Event) -> None:
        """Follow a call that returned its offset."""
        offset = whole(event.outcome)
        if offset is not None and offset >= 0:
            self.position = offset

    def forked(self) -> None:
        """Follow that the process is a new one, from here on."""
        self.own = 0

    def frozen(self) -> StandardInput:
        """Return it as a value."""
        parts = tuple(each.frozen() if isinstance(each, _Stretch) else each for each in self.parts)
        return StandardInput(self.position, self.count, self.own, parts, self.is_known)

    def _add(self, data: bytes) -> None:
        if not data:
            return
        last = self.parts[-1] if self.parts else None
        if not isinstance(last, _Stretch) or last.offset + last.length != self.position:
            last = _Stretch(self.position)
            self.parts.append(last)
        last.add(data)

    def _moved(self, count: int) -> None:
        self.position += count
        self.count += count
        self.own += count
