"""Exceptions that are read by a pattern are those that are decoded value by value, whatever was written."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from replaydbg.debugger.first_pass import written_values
from replaydbg.debugger.first_pass.written_values import exception_entries, values
from replaydbg.errors import ForgedMessage
from replaydbg.log.coding.encode import varint, zigzag


def number(value: int) -> bytes:
    return b"\x03" + zigzag(value)


def text(value: bytes) -> bytes:
    return b"\x06" + varint(len(value)) + value


def raised(
    count: int = 5, lane: int = 0, name: bytes = b"ValueError", message: bytes = b"", code: int = 1, kind: int = 0
) -> bytes:
    """Return an exception as the core writes it."""
    fields = number(count), number(lane), text(name), text(message), *map(number, (0x7F0012345678, 1, code, 3, kind))
    return b"\x09\x09" + b"".join(fields)


def by_value(data: bytes) -> Iterator[list[Any]]:
    return values(data, written_values._ENTRY, "exceptions")


def outcome(read: Callable[[bytes], Iterator[list[Any]]], data: bytes) -> list[object]:
    """Return what was read, and the error that ended it."""
    found: list[object] = []
    try:
        found += read(data)
    except ForgedMessage as error:
        found.append(str(error))
    return found


LINEAGE = b"\x09\x02" + text(b"builtins.ValueError") + text(b"builtins.object")
CODE = b"\x09\x03" + number(7) + text(b"a.py") + text(b"main")

WRITTEN = {
    "usual": raised(),
    "large numbers": raised(count=(1 << 62) - 1, lane=300, code=1 << 40),
    "too large": raised(count=1 << 62),
    "negative count": raised(count=-1),
    "negative lane": raised(lane=-1),
    "negative code": raised(code=-1),
    "unknown kind": raised(kind=3),
    "uncaught": raised(kind=2),
    "long name": raised(name=b"E" * 200),
    "long message": raised(message=b"m" * 20_000),
    "accents": raised(message="très".encode()),
    "a lone surrogate": raised(message="\ud800".encode("utf-8", "surrogatepass")),
    "no UTF-8": raised(message=b"\xff\xfe"),
    "like numbers": raised(name=number(1) + number(1) + number(3) + number(0), message=number(1)),
    "newlines": raised(message=b"a\nb\x00"),
    "cut": raised()[:-1],
    "cut in a text": raised(message=b"long")[:20],
    "others": LINEAGE + CODE + raised() + b"\x09\x03" + number(1) + number(2) + number(3) + raised(),
    "empty": b"",
}


@pytest.mark.parametrize("data", WRITTEN.values(), ids=WRITTEN)
def test_every_form_is_read_alike(data: bytes) -> None:
    assert outcome(exception_entries, data) == outcome(by_value, data)


def test_what_was_changed_at_random_is_read_alike() -> None:
    generator = random.Random(1)
    plain = LINEAGE + CODE + b"".join(raised(count=each * 999, message=b"%d" % each) for each in range(40))
    for _ in range(3_000):
        data = bytearray(plain)
        for _ in range(generator.randint(1, 3)):
            data[generator.randrange(len(data))] = generator.choice(
                [0, 3, 6, 9, 0x7F, 0x80, 0xFF, generator.randrange(256)]
            )
        assert outcome(exception_entries, bytes(data)) == outcome(by_value, bytes(data))


def test_the_usual_form_is_read_by_the_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = list(by_value(raised() * 3))
    monkeypatch.setattr(written_values, "_value", None)

    assert list(exception_entries(raised() * 3)) == expected
