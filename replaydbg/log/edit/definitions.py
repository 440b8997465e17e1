"""Rewrite records of a log: its definitions keep their numbers, and events of other logs get numbers in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from replaydbg.events.records import Event, WorldAnswer
from replaydbg.events.values import ContentRef, TypeName, Value
from replaydbg.log.coding.decode import Cursor
from replaydbg.log.coding.encode import encode_value, text, varint
from replaydbg.log.entries.raw import CONTROL, DEFINITION
from replaydbg.log.entries.stream import SHAPE_ARGUMENTS, SHAPE_DIGEST, SHAPE_FILLED

_CODE, _SITE, _ARGUMENTS, _TYPE = range(4)
_WORLD = 16

_Code: TypeAlias = tuple[str, str, int]
_Site: TypeAlias = tuple[int, int, int, int, int]
"""Gate, code, instruction, line, shape."""


class Definitions:
    """The definitions of a log that is being written, with their numbers."""

    def __init__(self) -> None:
        self.data: list[bytes] = []
        """The records, in order."""
        self._codes: dict[_Code, int] = {}
        self._sites: dict[_Site, int] = {}
        self._arguments: dict[bytes, int] = {}
        self._types: dict[TypeName, int] = {}
        self._by_number: list[_Site] = []
        self._counts = [0, 0, 0, 0]

    def load(self, data: bytes) -> None:
        """Add a definition of another log. All of that log must come first, so that the numbers stay the same."""
        cursor = Cursor(data, ())
        kind = cursor.varint() >> 2
        self.data.append(data)
        self._counts[kind] += 1
        number = self._counts[kind]
        if kind == _CODE:
            self._codes.setdefault((cursor.text(), cursor.text(), cursor.varint()), number)
        elif kind == _SITE:
            site = _site(cursor)
            self._by_number.append(site)
            self._sites.setdefault(site, number)
        elif kind == _ARGUMENTS:
            self._arguments.setdefault(data[cursor.pos :], number)
        else:
            self._types.setdefault(TypeName(cursor.text(), cursor.text()), number)

    def shape(self, site: int) -> int:
        """Return which parts the events of a site have."""
        return self._by_number[site - 1][4]

    def type_id(self, name: TypeName) -> int:
        """Return the number of a type."""
        return self._number(_TYPE, self._types, name, text(name.module) + text(name.qualname))

    def code(self, code: _Code) -> int:
        """Return the number of a code object."""
        return self._number(_CODE, self._codes, code, text(code[0]) + text(code[1]) + varint(code[2]))

    def site(self, site: _Site) -> int:
        """Return the number of a site."""
        before = len(self._sites)
        number = self._number(_SITE, self._sites, site, b"".join(map(varint, site)))
        if len(self._sites) > before:
            self._by_number.append(site)
        return number

    def arguments(self, value: tuple[Value, ...]) -> int:
        """Return the number of a tuple of arguments."""
        data = encode_value(value, self.type_id)
        return self._number(_ARGUMENTS, self._arguments, data, data)

    def _number(self, kind: int, known: dict[Value, int], key: Value, data: bytes) -> int:
        if key not in known:
            self._counts[kind] += 1
            known[key] = self._counts[kind]
            self.data.append(varint(kind << 2 | DEFINITION) + data)
        return known[key]


class Places:
    """The codes and sites of a log from which events are copied into another one."""

    def __init__(self) -> None:
        self.codes: list[_Code] = []
        self.sites: list[_Site] = []

    def load(self, data: bytes) -> None:
        """Record a definition."""
        cursor = Cursor(data, ())
        kind = cursor.varint() >> 2
        if kind == _CODE:
            self.codes.append((cursor.text(), cursor.text(), cursor.varint()))
        elif kind == _SITE:
            self.sites.append(_site(cursor))

    def moved(self, data: bytes, event: Event, gates: dict[int, int], to: Definitions, shift: int) -> bytes | None:
        """Return an event for the log with the definitions `to`; None if that log has no such gate.

        `gates` are the numbers of the gates there; offsets of contents are increased by `shift`.
        """
        cursor = Cursor(data, ())
        gate, code, *rest = self.sites[(cursor.varint() >> 2) - 1]
        if gate not in gates:
            return None
        number = to.code(self.codes[code - 1]) if code else 0
        site = to.site((gates[gate], number, rest[0], rest[1], rest[2]))
        arguments = varint(to.arguments(event.arguments)) if event.arguments is not None else b""
        return _event(site, arguments + (event.digest or b""), event, to, shift)


def answered(data: bytes, by: Event, definitions: Definitions, shift: int) -> bytes:
    """Return an event of the log with these definitions, with the answer of another event."""
    cursor = Cursor(data, ())
    site = cursor.varint() >> 2
    start = cursor.pos
    shape = definitions.shape(site)
    if shape & SHAPE_ARGUMENTS:
        cursor.varint()
    if shape & SHAPE_DIGEST:
        cursor.raw(4)
    return _event(site, data[start : cursor.pos], by, definitions, shift)


def _event(site: int, asked: bytes, by: Event, definitions: Definitions, shift: int) -> bytes:
    answer = encode_value(shifted(by.outcome, shift), definitions.type_id)
    if definitions.shape(site) & SHAPE_FILLED:
        answer += encode_value(shifted(by.filled, shift), definitions.type_id)
    return varint(site << 2 | by.raised) + asked + answer


def shifted(value: Value, shift: int) -> Value:
    """Return a value with the offsets of its contents increased by `shift`."""
    if isinstance(value, ContentRef):
        return ContentRef(value.offset + shift, value.length)
    if type(value) in (tuple, list):
        return type(value)(shifted(each, shift) for each in value)
    return value


def world_records(answers: Iterator[WorldAnswer]) -> bytes:
    """Return the records of a world log."""
    definitions = Definitions()
    out = []
    for answer in answers:
        value = encode_value(answer.outcome, definitions.type_id)
        head = varint(_WORLD << 2 | CONTROL)
        out.append(head + text(answer.operation) + text(answer.path) + varint(answer.asked) + value)
    return b"".join([*definitions.data, *out])


def _site(cursor: Cursor) -> _Site:
    gate, code, instruction, line, shape = (cursor.varint() for _ in range(5))
    return gate, code, instruction, line, shape
