"""Read the two files of a trace, as written by replaydbg/native/clock/trace.c.

`ticks` has blocks of 64 KiB. A block's head: ticks and events before it (8 bytes each, little-endian), the running
lane, the number of code objects met so far, and how many bytes of the block are used (4 bytes each), then 4 unused.
Then records, each a varint whose low two bits are its kind: a tick (number of the code object, then a varint for the
instruction, then, when the number is met for the first time, 8 bytes for its meaning), an event (number of the gate),
another lane, the end (why, and the number of lanes). `codes` has records too, each with its length before it and a
value as in the event log.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from replaydbg.log.coding.codec import decode_value

BLOCK = 1 << 16
"""Size in bytes of a block of the file `ticks`."""
_HEAD = struct.Struct("<QQIII4x")
_CODE, _CODE_INSIDE, _BEGUN_INSIDE = range(3)


class Kind(Enum):
    """The kind of an item of a trace."""

    TICK = "tick"
    EVENT = "event"
    END = "end"


class TraceEnd(Enum):
    """Why a trace ends."""

    WHOLE = "the run ended"
    LIMIT = "the limit was reached"
    NO_ROOM = "it could not be written any further"
    KILLED = "the run was killed: what it did last is missing"


_ENDINGS = (TraceEnd.WHOLE, TraceEnd.LIMIT, TraceEnd.NO_ROOM)


@dataclass(frozen=True, slots=True)
class Code:
    """A code object: a function, a class body, a module."""

    file: str
    """The file name in the code object."""
    function: str
    """The qualified name."""
    first_line: int
    """The first line of the code."""
    lines: bytes
    """The line of each instruction, see `line`."""

    def line(self, instruction: int) -> int:
        """Return the line of an instruction, or the first one where it has none."""
        numbers = _varints(self.lines)
        line = unit = 0
        for units, step in zip(numbers[::2], numbers[1::2], strict=True):
            line += step >> 1 ^ -(step & 1)
            unit += units
            if instruction < unit:
                return line or self.first_line
        return self.first_line


@dataclass(frozen=True, slots=True)
class TraceItem:
    """A tick, an event, or the end of a trace."""

    kind: Kind
    """Which of them."""
    lane: int
    """The lane that ran; 0 is the main one."""
    number: int
    """The number of the code object, or of the gate (0: none); for an end see `ending` and `lanes`."""
    instruction: int = 0
    """For a tick: in code units."""
    identity: bytes = b""
    """For a tick in a code object that is met for the first time: the meaning of its number."""


@dataclass(frozen=True, slots=True)
class TraceBlock:
    """One block, decoded."""

    ticks: int
    """Number of ticks before it."""
    events: int
    """Number of events before it."""
    items: tuple[TraceItem, ...]
    """Its items, in order."""


@dataclass(frozen=True, slots=True)
class Inside:
    """A Python function that began while a gate was open, outside a callback of the program's code."""

    code: Code
    """The function."""
    gate: int
    """The gate's number; 0: none was open, and it was the tool's own work."""
    event: int
    """Number of events before it."""
    lane: int
    """The lane in which it ran."""


class TraceFiles:
    """The trace that a run has written into a directory."""

    def __init__(self, directory: Path) -> None:
        """Read the code objects; ticks are read on demand."""
        self.path = directory / "ticks"
        """The file of ticks, compared byte for byte."""
        self.codes: list[Code] = []
        """The code object with the number n is the one at n - 1."""
        self.insides: list[Inside] = []
        """In the order of beginning."""
        self._read_codes((directory / "codes").read_bytes())

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return self.path.stat().st_size // BLOCK

    def block(self, index: int) -> TraceBlock:
        """Return a block, decoded."""
        with self.path.open("rb") as file:
            file.seek(index * BLOCK)
            return decode_block(file.read(BLOCK))

    def _read_codes(self, data: bytes) -> None:
        inside: list[Code] = []
        for record in _values(data):
            kind, *rest = record
            if kind == _BEGUN_INSIDE:
                number, gate, event, lane = rest
                self.insides.append(Inside(inside[number - 1], gate, event, lane))
            else:
                (self.codes if kind == _CODE else inside).append(Code(*rest))


def ending(item: TraceItem) -> TraceEnd:
    """Return why the trace ends at `item`, which is of the kind END."""
    return _ENDINGS[item.number & 3]


def lanes(item: TraceItem) -> int:
    """Return the number of lanes up to `item`, which is of the kind END."""
    return item.number >> 2


def decode_block(data: bytes) -> TraceBlock:
    """Return the content of one block."""
    ticks, events, lane, codes, used = _HEAD.unpack_from(data)
    items: list[TraceItem] = []
    at = _HEAD.size
    while at < used:
        number, at = _varint(data, at)
        kind, number = number & 3, number >> 2
        if kind == 0:
            instruction, at = _varint(data, at)
            identity = b""
            if number > codes:
                codes = number
                identity, at = data[at : at + 8], at + 8
            items.append(TraceItem(Kind.TICK, lane, number, instruction, identity))
        elif kind == 2:
            lane = number
        else:
            items.append(TraceItem(Kind.EVENT if kind == 1 else Kind.END, lane, number))
    return TraceBlock(ticks, events, tuple(items))


def _values(data: bytes) -> Iterator[list[Any]]:
    at = 0
    while at < len(data):
        length, at = _varint(data, at)
        if at + length > len(data):
            return  # the run was killed while writing it
        value = decode_value(data[at : at + length])
        assert isinstance(value, list), value
        yield value
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at


def _varints(data: bytes) -> list[int]:
    numbers: list[int] = []
    at = 0
    while at < len(data):
        number, at = _varint(data, at)
        numbers.append(number)
    return numbers
