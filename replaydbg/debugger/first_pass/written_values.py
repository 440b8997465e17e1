"""Decode the values that the process of the first pass writes one after another into a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from replaydbg.errors import ForgedMessage
from replaydbg.log.coding.decode import Cursor, Malformed, Short
from replaydbg.log.coding.encode import STR
from replaydbg.log.coding.shapes import COUNT, ListOf, checked, one_of

_MOST_KNOWN = 1 << 14
"""Texts, or numbers, that are decoded once although they come again and again."""

MOST_ENTRIES = 4_000_000
"""Exceptions, or pieces of output, of a run."""

_LINEAGE = ListOf(str)
_CODE = (COUNT, str, str)
"""A code object: its first line, file and name."""
_LEFT_OUT = (COUNT, COUNT, COUNT)
_RAISED = (COUNT, COUNT, str, str, int, COUNT, COUNT, COUNT)
FRESH, AGAIN, UNCAUGHT = range(3)
_ENTRY = one_of(*((*_RAISED, kind) for kind in (FRESH, AGAIN, UNCAUGHT)), _LEFT_OUT, _CODE, _LINEAGE)

_NUMBER = rb"\x03[\x80-\xff]{0,8}[\x00-\x7f]"
_HEAD = re.compile(rb"\x09\x09(" + _NUMBER + rb")(" + _NUMBER + rb")\x06([\x00-\x7f])", re.DOTALL)
"""A list of nine: two numbers, and the length of a short text, which follows."""
_EACH = re.compile(_NUMBER, re.DOTALL)
_TAIL = re.compile(rb"(" + _NUMBER + rb")((?:" + _NUMBER + rb"){4})", re.DOTALL)
"""The five numbers after another text."""


def values(data: bytes, shape: object, what: str) -> Iterator[list[Any]]:
    """Yield the values in `data`, each of which must have `shape`. Raises ForgedMessage."""
    cursor = _cursor(data)
    number = 0
    while cursor.pos < len(data):
        number = _next(number, what)
        yield _value(cursor, shape, what)


def exception_entries(data: bytes) -> Iterator[list[Any]]:
    """Yield what `values` yields for the exceptions of a run.

    There may be a million of them. Most have one form, which is read by a pattern, several times as fast; what does not
    fit it, or would be wrong, is decoded value by value.
    """
    cursor, usual = _cursor(data), _UsualExceptions(data)
    number = 0
    while cursor.pos < len(data):
        number = _next(number, "exceptions")
        entry = usual.entry(cursor.pos)
        if entry:
            cursor.pos = usual.end
            yield entry
        else:
            yield _value(cursor, _ENTRY, "exceptions")


class _UsualExceptions:
    """Reads exceptions of the usual form: seven numbers and two short texts."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._texts: dict[bytes, str] = {}
        self._numbers: dict[bytes, tuple[int, ...]] = {}
        self.end = 0
        """The end of the exception that was read last."""

    def entry(self, at: int) -> list[Any]:
        """Return the exception that begins at `at`; an empty list: it has another form."""
        data = self._data
        head = _HEAD.match(data, at)
        if head is None:
            return []
        count, lane, size = head.groups()
        type_at = head.end()
        type_end = type_at + size[0]
        message_at = type_end + 2
        before = data[type_end:message_at]
        if len(before) < 2 or before[0] != STR or before[1] > 0x7F:
            return []
        message_end = message_at + before[1]
        tail = _TAIL.match(data, message_end)
        if tail is None:
            return []
        fixed, lines, (thread,) = self._fixed(tail[2]), _number(count), self._fixed(lane)
        if lines < 0 or thread < 0 or min(fixed) < 0 or fixed[3] > UNCAUGHT:
            return []
        try:
            entry = [lines, thread, self._text(data[type_at:type_end]), self._text(data[message_at:message_end])]
        except UnicodeDecodeError:
            return []
        self.end = tail.end()
        return [*entry, _number(tail[1]), *fixed]

    def _text(self, data: bytes) -> str:
        known = self._texts.get(data)
        if known is None:
            known = data.decode("utf-8", "surrogatepass")
            if len(self._texts) < _MOST_KNOWN:
                self._texts[data] = known
        return known

    def _fixed(self, data: bytes) -> tuple[int, ...]:
        known = self._numbers.get(data)
        if known is None:
            known = tuple(map(_number, _EACH.findall(data)))
            if len(self._numbers) < _MOST_KNOWN:
                self._numbers[data] = known
        return known


def _number(data: bytes) -> int:
    """Return a number with its tag."""
    number, shift = 0, 0
    for byte in data[1:]:
        number |= (byte & 0x7F) << shift
        shift += 7
    return number >> 1 ^ -(number & 1)


def _cursor(data: bytes) -> Cursor:
    return Cursor(data, (), budget=max(1 << 12, 8 * len(data)))


def _next(number: int, what: str) -> int:
    if number >= MOST_ENTRIES:
        raise ForgedMessage(f"it wrote more than {MOST_ENTRIES:,} entries of {what}")
    return number + 1


def _value(cursor: Cursor, shape: object, what: str) -> Any:
    try:
        value: Any = cursor.value()
    except (Malformed, Short, RecursionError, ValueError) as error:
        raise ForgedMessage(f"it wrote malformed {what}: {error}") from None
    return checked(value, shape, what)
