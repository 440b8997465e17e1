"""Mutations of a log file: its header, its records, the numbers and values within one."""

import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from random import Random

from replaydbg.events.run_facts import GateRow
from replaydbg.log.coding.encode import varint
from replaydbg.log.entries.logfile import LOG_HEADER
from replaydbg.log.entries.raw import RawStream
from replaydbg.log.entries.stream import LogStream
from tests.fuzz import chunks

_HEADER = struct.Struct("<8sIIQQQ24s")
_DEEPEST = 260


class _WorldStream(LogStream):
    def parts(self) -> Iterator[bytes]:
        yield from self._decode(self._part)

    def _part(self, cursor: object) -> bytes:
        start = self._cursor.pos
        self._answer(self._cursor)
        return self._cursor.data[start : self._cursor.pos]


@lru_cache(400)
def records(body: bytes, gates: tuple[GateRow, ...], *, is_world: bool) -> tuple[bytes, ...]:
    """Return the records of a log without its header, as far as they can be separated; the rest is one more."""
    made = (_WorldStream if is_world else RawStream)(iter([body]), total=len(body), stored=len(body), gates=gates)
    found = list(made.parts()) if isinstance(made, _WorldStream) else [each.data for each in made.records()]
    rest = body[made.position :]
    return (*found, rest) if rest else tuple(found)


def mutated(data: bytes, rng: Random, gates: Sequence[GateRow], *, is_world: bool = False) -> bytes:
    """Return a log file with changed records; its header matches them, unless that is what changed."""
    if len(data) < LOG_HEADER:
        return chunks.mutated(data, rng)
    magic, number, stopped, _, crossings, start, rest = _HEADER.unpack_from(data)
    found = list(records(data[LOG_HEADER:], tuple(gates), is_world=is_world))
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        _change(found, rng)
    body = b"".join(found)
    committed = LOG_HEADER + len(body)
    match rng.randrange(40):
        case 0:
            committed = chunks.number(rng, committed) & (1 << 64) - 1
        case 1:
            crossings = chunks.number(rng, crossings) & (1 << 64) - 1
        case 2:
            stopped = chunks.number(rng, stopped) & (1 << 32) - 1
        case 3:
            number = chunks.number(rng, number) & (1 << 32) - 1
        case 4:
            return chunks.mutated(data, rng)
    return _HEADER.pack(magic, number, stopped, committed, crossings, start, rest) + body


def _change(found: list[bytes], rng: Random) -> None:
    if not found:
        found.append(rng.randbytes(6))
        return
    at = rng.randrange(len(found))
    match rng.randrange(12):
        case 0:
            del found[at]
        case 1:
            found.insert(rng.randrange(len(found) + 1), found[at])
        case 2:
            other = rng.randrange(len(found))
            found[at], found[other] = found[other], found[at]
        case 3:
            found[at:at] = [found[at]] * rng.choice((2, 10, 200))
        case 4:
            found.insert(at, _control(rng))
        case 5:
            found.insert(at, _definition(rng))
        case 6 | 7:
            found[at] = _renumbered(found[at], rng)
        case 8:
            found[at] = found[at][: rng.randrange(len(found[at]) + 1)] + value(rng)
        case 9:
            found[at] = found[at][: rng.randrange(len(found[at]) + 1)] + found[rng.randrange(len(found))]
        case _:
            found[at] = chunks.mutated(found[at], rng, most=2)


def _renumbered(record: bytes, rng: Random) -> bytes:
    """Replace a range of bytes that may be a number."""
    if not record:
        return record
    begin = rng.choice((0, rng.randrange(len(record))))
    end = begin
    while end < len(record) - 1 and record[end] & 0x80 and end - begin < 9:
        end += 1
    return record[:begin] + varint(chunks.number(rng, record[begin]) & (1 << 64) - 1) + record[end + 1 :]


def _control(rng: Random) -> bytes:
    head = varint(rng.choice((*range(24), chunks.number(rng))) << 2 & (1 << 64) - 1 | 2)
    return head + b"".join(_number(rng) for _ in range(rng.randrange(4))) + value(rng) * rng.randrange(2)


def _definition(rng: Random) -> bytes:
    head = varint(rng.randrange(5) << 2 | 3)
    return head + b"".join(rng.choice((_text(rng), _number(rng), value(rng))) for _ in range(rng.randrange(6)))


def _number(rng: Random) -> bytes:
    return varint(chunks.number(rng) & (1 << 64) - 1)


def _text(rng: Random) -> bytes:
    data = rng.choice((b"", b"x", b"\xff", b"\xed\xa0\x80", b"/a/b.py", b"\0", b"name" * 20))
    return varint(len(data) if rng.randrange(8) else chunks.number(rng, len(data)) & (1 << 64) - 1) + data


def value(rng: Random, depth: int = 0) -> bytes:
    """Return a value of the format (section 3 of format.md), which may be invalid."""
    tag = rng.choice((*range(0x1B), 0x40, 0x7F, 0x80))
    if depth > 3:
        tag = rng.choice((0, 1, 3, 0x41))
    head = bytes([tag])
    if tag in (8, 9, 0x10, 0x11):
        if depth == 0 and rng.randrange(10) == 0:
            return (head + b"\1") * rng.choice((_DEEPEST, 199, 200, 201)) + b"\0"
        count = rng.randrange(4)
        claimed = count if rng.randrange(8) else chunks.number(rng, count) & (1 << 64) - 1
        return head + varint(claimed) + b"".join(value(rng, depth + 1) for _ in range(count))
    if tag == 0x0A:
        count = rng.randrange(3)
        return head + varint(count) + b"".join(value(rng, depth + 1) for _ in range(2 * count))
    if tag in (3, 0x0D, 0x17):
        return head + _number(rng)
    if tag in (4, 6, 7, 0x0E, 0x14):
        return head + _text(rng)
    if tag == 5:
        return head + rng.randbytes(8)
    if tag == 0x0B:
        return head + varint(rng.randrange(4)) + varint(2) + value(rng, depth + 1) + value(rng, depth + 1)
    if tag == 0x0C:
        return head + b"".join(_number(rng) for _ in range(13))
    if tag == 0x0F:
        return head + rng.randbytes(16)
    if tag == 0x12:
        return head + varint(rng.randrange(4)) + b"\x08\1" + value(rng, depth + 1) + b"\0"
    if tag == 0x13:
        return head + _number(rng) + _number(rng)
    if tag == 0x15:
        return head + bytes([rng.choice((6, 7, 8))]) + _number(rng) + rng.randbytes(8) + _text(rng)
    if tag == 0x16:
        return head + value(rng, depth + 1) + value(rng, depth + 1)
    return head
