"""Encode values in the recording format (docs/reference/format.md, section 3).

The launcher uses it to encode its orders to the program's process, so it imports almost nothing: the classes of
`replaydbg.events` cost several milliseconds and are looked up only when a value is not a plain one.
"""

from __future__ import annotations

import struct

TYPE_CHECKING = False  # the same as typing's, without importing typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from replaydbg.events.values import TypeName

FORMAT = 4
"""The format number that is written, and the newest that is read. Its history is in format.md."""

CHECKS = "checks"
"""The header's `ticks` of recordings in which 3.11 counts calls and jumps; before, a trace function counted lines."""

MAX_DEPTH = 200
"""Maximum nesting depth of values. Data of real programs stays below 20; hostile data must not exhaust the stack."""

NONE, FALSE, TRUE, INT, BIG_INT, FLOAT, STR, BYTES = range(8)
TUPLE, LIST, DICT, STRUCT, STAT, ARGUMENT, BYTEARRAY, COMPLEX = range(8, 16)
SET, FROZENSET, EXCEPTION, CONTENT, OPAQUE, CUT, DIR_ENTRY, FILE = range(16, 24)
BUFFER_LEAVES, BUFFER_FILLED = 24, 25
SMALL_INT, SMALL_INT_END = 0x40, 0x80

_ONE_BYTE = tuple(bytes((number,)) for number in range(0x80))
_SHORT_TEXT = tuple(bytes((STR, length)) for length in range(0x80))
_FLOAT = struct.Struct("<d")
_COMPLEX = struct.Struct("<dd")


def varint(number: int) -> bytes:
    """Return `number` (0 to 2**64 - 1) as unsigned LEB128."""
    if 0 <= number < 0x80:
        return _ONE_BYTE[number]
    if not 0 <= number < 1 << 64:
        raise ValueError(f"not a varint: {number!r}")
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def zigzag(number: int) -> bytes:
    """Return `number` (signed, 64 bits) as a varint in which small magnitudes are short."""
    return varint((number << 1 ^ number >> 63) & 0xFFFF_FFFF_FFFF_FFFF)


def text(string: str) -> bytes:
    """Return `string` as a `str payload`: its length in bytes, then UTF-8 that keeps lone surrogates."""
    data = string.encode("utf-8", "surrogatepass")
    return varint(len(data)) + data


def encode_value(value: Any, type_id: Callable[[TypeName], int] | None = None) -> bytes:
    """Return `value` in the format's encoding.

    `value` is made of None, bool, int, float, complex, str, bytes, bytearray, tuple, list, dict, set, frozenset and the
    classes of `replaydbg.events.values`. `type_id` returns the number of a defined type; it is needed for struct
    sequences and exceptions only. Raises TypeError for anything else (subclasses included: they would be decoded as
    another type) and ValueError for nesting beyond MAX_DEPTH.
    """
    out = bytearray()
    _encode(value, out, type_id, 0)
    return bytes(out)


def _encode(value: Any, out: bytearray, type_id: Callable[[TypeName], int] | None, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ValueError(f"values nested deeper than {MAX_DEPTH} cannot be encoded")
    kind = type(value)
    if value is None:
        out.append(NONE)
    elif kind is bool:
        out.append(TRUE if value else FALSE)
    elif kind is int:
        out += _integer(value)
    elif kind is float:
        out.append(FLOAT)
        out += _FLOAT.pack(value)
    elif kind is str:
        out.append(STR)
        out += text(value)
    elif kind is bytes or kind is bytearray:
        out.append(BYTES if kind is bytes else BYTEARRAY)
        out += varint(len(value)) + value
    elif kind is complex:
        out.append(COMPLEX)
        out += _COMPLEX.pack(value.real, value.imag)
    elif kind is dict:
        out.append(DICT)
        out += varint(len(value))
        for key, item in value.items():
            _encode(key, out, type_id, depth + 1)
            _encode(item, out, type_id, depth + 1)
    elif kind in _SEQUENCES:
        out.append(_SEQUENCES[kind])
        out += varint(len(value))
        for item in value:
            # Most values that are passed to a replay at its start are short texts, and they take most of the time.
            if type(item) is str and len(item) < 0x80 and item.isascii() and depth < MAX_DEPTH:
                out += _SHORT_TEXT[len(item)]
                out += item.encode()
            else:
                _encode(item, out, type_id, depth + 1)
    else:
        _encode_recorded(value, out, type_id, depth)


_SEQUENCES: dict[type, int] = {tuple: TUPLE, list: LIST, set: SET, frozenset: FROZENSET}


def _integer(value: int) -> bytes:
    if 0 <= value < SMALL_INT_END - SMALL_INT:
        return _ONE_BYTE[SMALL_INT + value]
    if -(1 << 63) <= value < 1 << 63:
        return bytes((INT,)) + zigzag(value)
    size = value.bit_length() // 8 + 1
    return bytes((BIG_INT,)) + varint(size) + value.to_bytes(size, "little", signed=True)


def _encode_recorded(value: Any, out: bytearray, type_id: Callable[[TypeName], int] | None, depth: int) -> None:
    # Imported here: dataclasses, which the module needs, cost 6 ms that plain values need not pay.
    from replaydbg.events import values

    def number(name: TypeName) -> bytes:
        if type_id is None:
            raise TypeError(f"{name!r} needs a number, and no type_id was given")
        return varint(type_id(name))

    if isinstance(value, values.StructSequence):
        out += bytes((STRUCT,)) + number(value.type) + varint(len(value.values))
        for item in value.values:
            _encode(item, out, type_id, depth + 1)
    elif isinstance(value, values.StatResult):
        out.append(STAT)
        for field in values.STAT_FIELDS:
            out += zigzag(getattr(value, field))
    elif isinstance(value, values.Argument):
        out += bytes((ARGUMENT,)) + varint(value.index)
    elif isinstance(value, values.ExceptionValue):
        out += bytes((EXCEPTION,)) + number(value.type)
        _encode(value.args, out, type_id, depth + 1)
        _encode(value.os_error, out, type_id, depth + 1)
    elif isinstance(value, values.ContentRef):
        out += bytes((CONTENT,)) + varint(value.offset) + varint(value.length)
    elif isinstance(value, values.Opaque):
        out += bytes((OPAQUE,)) + text(value.type_name)
    elif isinstance(value, values.Cut):
        start = value.start if isinstance(value.start, bytes) else value.start.encode("utf-8", "surrogatepass")
        out += bytes((CUT, BYTES if isinstance(value.start, bytes) else STR)) + varint(value.length) + value.digest
        out += varint(len(start)) + start
    elif isinstance(value, values.DirectoryEntry):
        out.append(DIR_ENTRY)
        _encode(value.name, out, type_id, depth + 1)
        _encode(value.path, out, type_id, depth + 1)
    elif isinstance(value, values.Buffer):
        out.append(BUFFER_LEAVES if value.leaves else BUFFER_FILLED)
    elif isinstance(value, values.OpenFile):
        out += bytes((FILE,)) + varint(0 if value.fd is None else value.fd + 1)
    else:
        raise TypeError(f"not data that a recording can hold: {type(value).__qualname__}")
