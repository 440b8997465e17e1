"""Decode the primitives and values of the recording format, without trusting any byte.

A length is not trusted before the bytes are there, recursion is limited, and names in a value are never called.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from replaydbg.events import values
from replaydbg.events.values import TypeName, Value
from replaydbg.log.coding import encode

_FLOAT = struct.Struct("<d")
_COMPLEX = struct.Struct("<dd")
_SMALL_INT, _MAX_DEPTH = encode.SMALL_INT, encode.MAX_DEPTH


_BYTES_PER_STEP = 4
"""Bytes of a text that is not ASCII that are decoded in the time of an element."""

_PER_VALUE = 2
"""The time for a value of more than one byte, in elements of one byte."""

_PER_ELEMENT = 3
"""The time for an element that is put into a set or dict, in elements."""


class Short(Exception):
    """The bytes end too early; `needed` is their minimum number from the beginning."""

    def __init__(self, needed: int) -> None:
        self.needed = needed
        super().__init__(needed)


class Malformed(Exception):
    """The bytes violate the format; the message describes what was found."""


class Cursor:
    """Reads primitives and values from `data`, starting at `pos`; `types` are the defined types, number 1 first.

    Every method moves `pos` past what it read, and raises Short or Malformed. `budget` is how many elements the
    containers read from now on may have; the caller renews it: a few compressed bytes can expand to a million elements.
    """

    __slots__ = ("budget", "content_end", "data", "pos", "types", "work")

    def __init__(self, data: bytes, types: Sequence[TypeName] = (), *, pos: int = 0, budget: int = 1 << 22) -> None:
        self.data = data
        self.pos = pos
        self.types = types
        self.budget = budget
        self.content_end = 0
        """The end of the last content that a value referred to."""
        self.work = 0
        """How many elements could have been decoded in the time that was spent on anything else."""

    def byte(self) -> int:
        """Read one byte."""
        pos = self.pos
        if pos >= len(self.data):
            raise Short(pos + 1)
        self.pos = pos + 1
        return self.data[pos]

    def raw(self, size: int) -> bytes:
        """Read `size` bytes."""
        end = self.pos + size
        if end > len(self.data):
            raise Short(end)
        piece = self.data[self.pos : end]
        self.pos = end
        return piece

    def varint(self) -> int:
        """Read an unsigned number of at most 64 bits."""
        # Most numbers of a log have one byte: this is the innermost part of reading it.
        pos = self.pos
        try:
            byte = self.data[pos]
        except IndexError:
            raise Short(pos + 1) from None
        if byte < 0x80:
            self.pos = pos + 1
            return byte
        return self._long_varint(pos + 1, byte & 0x7F)

    def _long_varint(self, pos: int, number: int) -> int:
        data = self.data
        limit = len(data)
        shift = 7
        while True:
            if pos >= limit:
                raise Short(pos + 1)
            byte = data[pos]
            pos += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 63:
                raise Malformed("a number is longer than 64 bits")
        if number >> 64:
            raise Malformed("a number is longer than 64 bits")
        self.pos = pos
        return number

    def zigzag(self) -> int:
        """Read a signed number of at most 64 bits."""
        number = self.varint()
        return number >> 1 ^ -(number & 1)

    def text(self) -> str:
        """Read a `str payload`."""
        data = self.raw(self.varint())
        if not data.isascii():
            self.work += len(data) // _BYTES_PER_STEP  # lone surrogates take 40 ns a byte
        try:
            return data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise Malformed("a text is not UTF-8") from error

    def count(self, *, each: int = 1) -> int:
        """Read the number of elements that follow, each of which takes at least `each` bytes."""
        count = self.varint()
        self.budget -= count * each
        if self.budget < 0:
            raise Malformed(f"a container claims {count} elements, more than a recording of this size can hold")
        if self.pos + count * each > len(self.data):
            raise Short(self.pos + count * each)
        return count

    def spend(self, elements: int) -> None:
        """Deduct a value that takes as much memory as `elements` small ones."""
        self.budget -= elements
        if self.budget < 0:
            raise Malformed("a record has more elements than a recording of this size can hold")

    def type_name(self) -> TypeName:
        """Read the number of a type."""
        number = self.varint()
        if not 1 <= number <= len(self.types):
            raise Malformed(f"type {number} is not defined")
        return self.types[number - 1]

    def value(self, depth: int = 0) -> Value:
        """Read a value at a nesting depth of `depth` containers."""
        pos = self.pos
        try:
            tag = self.data[pos]
        except IndexError:
            raise Short(pos + 1) from None
        self.pos = pos + 1
        if tag >= _SMALL_INT:
            if tag >= encode.SMALL_INT_END:
                raise Malformed(f"tag {tag:#04x} is not known")
            return tag - _SMALL_INT
        if depth > _MAX_DEPTH:
            raise Malformed(f"values are nested deeper than {_MAX_DEPTH}")
        reader = _READERS.get(tag)
        if reader is None:
            raise Malformed(f"tag {tag:#04x} is not known")
        self.work += _PER_VALUE
        return reader(self, depth + 1)


def _int(cursor: Cursor, depth: int) -> int:
    number = cursor.varint()
    return number >> 1 ^ -(number & 1)


def _big_int(cursor: Cursor, depth: int) -> int:
    return int.from_bytes(cursor.raw(cursor.varint()), "little", signed=True)


def _float(cursor: Cursor, depth: int) -> float:
    number: float = _FLOAT.unpack(cursor.raw(8))[0]
    return number


def _complex(cursor: Cursor, depth: int) -> complex:
    return complex(*_COMPLEX.unpack(cursor.raw(16)))


def _bytes(cursor: Cursor, depth: int) -> bytes:
    return cursor.raw(cursor.varint())


_CONTAINER = 7
"""Elements that a container itself costs: an empty set takes as much memory as seven numbers."""


def _bytearray(cursor: Cursor) -> bytearray:
    cursor.spend(2)
    return bytearray(cursor.raw(cursor.varint()))


def _items(cursor: Cursor, depth: int) -> list[Value]:
    if depth > 1:
        cursor.spend(_CONTAINER)
    return [cursor.value(depth) for _ in range(cursor.count())]


_MOST_ALIKE = 64
"""Different elements of a set that may have the same hash. Numbers of 64 bits have at most nine of each."""


class _Hashes:
    """The hashes of a set's elements or a dict's keys: if many are equal, each insertion compares with all of them."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def add(self, value: Value) -> None:
        """Count a new element. Raises Malformed if too many different ones have its hash."""
        number = hash(value)
        count = self._counts[number] = self._counts.get(number, 0) + 1
        if count > _MOST_ALIKE:
            raise Malformed(f"a set or dict has more than {_MOST_ALIKE} elements with the same hash")


def _hashed(make: Callable[[set[Value]], Value]) -> Callable[[Cursor, int], Value]:
    def read(cursor: Cursor, depth: int) -> Value:
        found: set[Value] = set()
        hashes = _Hashes()
        try:
            items = _items(cursor, depth)
            cursor.work += _PER_ELEMENT * len(items)
            for item in items:
                before = len(found)
                found.add(item)
                if len(found) > before:
                    hashes.add(item)
        except TypeError as error:
            raise Malformed("a set has an element that cannot be in a set") from error
        return make(found)

    return read


def _dict(cursor: Cursor, depth: int) -> dict[Value, Value]:
    found: dict[Value, Value] = {}
    hashes = _Hashes()
    if depth > 1:
        cursor.spend(_CONTAINER)
    for _ in range(cursor.count(each=2)):
        key, before = cursor.value(depth), len(found)
        try:
            found[key] = cursor.value(depth)
        except TypeError as error:
            raise Malformed("a dict has a key that cannot be a key") from error
        if len(found) > before:
            hashes.add(key)
    cursor.work += _PER_ELEMENT * len(found)
    return found


def _struct(cursor: Cursor, depth: int) -> values.StructSequence:
    return values.StructSequence(cursor.type_name(), tuple(_items(cursor, depth)))


def _stat(cursor: Cursor, depth: int) -> values.StatResult:
    # Each of its numbers takes as much memory, and as long to decode, as three elements.
    cursor.spend(3 * len(values.STAT_FIELDS))
    return values.StatResult(*[cursor.zigzag() for _ in values.STAT_FIELDS])


def _exception(cursor: Cursor, depth: int) -> values.ExceptionValue:
    cursor.spend(_CONTAINER)
    kind = cursor.type_name()
    args = cursor.value(depth)
    os_error = cursor.value(depth)
    if type(args) is not tuple or not (os_error is None or type(os_error) is tuple):
        raise Malformed("an exception's arguments are not a tuple")
    return values.ExceptionValue(kind, args, os_error)


def _content(cursor: Cursor, depth: int) -> values.ContentRef:
    ref = values.ContentRef(cursor.varint(), cursor.varint())
    cursor.content_end = max(cursor.content_end, ref.offset + ref.length)
    return ref


def _cut(cursor: Cursor, depth: int) -> values.Cut:
    kind = cursor.byte()
    if kind not in (encode.STR, encode.BYTES):
        raise Malformed(f"a cut value has tag {kind:#04x}")
    length = cursor.varint()
    digest = cursor.raw(8)
    start = cursor.raw(cursor.varint())
    # A str may have been cut inside a character; its beginning is only for display.
    return values.Cut(length, digest, start if kind == encode.BYTES else start.decode("utf-8", "replace"))


def _directory_entry(cursor: Cursor, depth: int) -> values.DirectoryEntry:
    cursor.spend(_CONTAINER)
    name, path = cursor.value(depth), cursor.value(depth)
    if not isinstance(name, (str, bytes)) or not isinstance(path, (str, bytes)):
        raise Malformed("a directory entry has a name that is not text")
    return values.DirectoryEntry(name, path)


def _open_file(cursor: Cursor, depth: int) -> values.OpenFile:
    number = cursor.varint()
    return values.OpenFile(number - 1 if number else None)


_READERS: dict[int, Callable[[Cursor, int], Value]] = {
    encode.NONE: lambda cursor, depth: None,
    encode.FALSE: lambda cursor, depth: False,
    encode.TRUE: lambda cursor, depth: True,
    encode.INT: _int,
    encode.BIG_INT: _big_int,
    encode.FLOAT: _float,
    encode.STR: lambda cursor, depth: cursor.text(),
    encode.BYTES: _bytes,
    encode.TUPLE: lambda cursor, depth: tuple(_items(cursor, depth)),
    encode.LIST: _items,
    encode.DICT: _dict,
    encode.STRUCT: _struct,
    encode.STAT: _stat,
    encode.ARGUMENT: lambda cursor, depth: values.Argument(cursor.varint()),
    encode.BYTEARRAY: lambda cursor, depth: _bytearray(cursor),
    encode.COMPLEX: _complex,
    encode.SET: _hashed(lambda found: found),
    encode.FROZENSET: _hashed(frozenset),
    encode.EXCEPTION: _exception,
    encode.CONTENT: _content,
    encode.OPAQUE: lambda cursor, depth: values.Opaque(cursor.text()),
    encode.CUT: _cut,
    encode.DIR_ENTRY: _directory_entry,
    encode.FILE: _open_file,
    encode.BUFFER_LEAVES: lambda cursor, depth: values.Buffer(True),
    encode.BUFFER_FILLED: lambda cursor, depth: values.Buffer(False),
}


def decode_value(data: bytes, types: Sequence[TypeName] = ()) -> Value:
    """Return the only value in `data`; raises Malformed if there is none, or more."""
    cursor = Cursor(data, types, budget=max(1 << 12, (1 + _CONTAINER) * len(data)))
    try:
        value = cursor.value()
    except Short as short:
        raise Malformed(f"a value runs past the end ({short.needed} bytes needed, {len(data)} there)") from short
    if cursor.pos != len(data):
        raise Malformed(f"{len(data) - cursor.pos} bytes follow the value")
    return value
