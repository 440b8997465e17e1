"""Check the shape of a value that a process of the recorded program sent, field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replaydbg.classes import dataclass
from replaydbg.errors import ForgedMessage
from replaydbg.log.coding.codec import decode_value

COUNT = range(1 << 63)
"""The shape of a number that counts something: lines, events, threads."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of several shapes."""

    shapes: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list or a tuple of any length whose items all have one shape."""

    item: object


@dataclass(frozen=True, slots=True)
class DictOf:
    """A dict of any length, from text to values that all have one shape."""

    item: object


def one_of(*shapes: object) -> OneOf:
    """Return the shape of a value that has one of `shapes`."""
    return OneOf(shapes)


def fits(value: object, shape: object) -> bool:
    """Whether `value` has `shape`.

    A shape is one of these. A type: the value has exactly that type. A range: it is an int in the range. A str, None or
    bool: it is equal. A tuple of shapes: it is a list or tuple with as many items, which have these shapes. A dict: it
    is a dict with these keys, with values of these shapes, and may have others. `object`: anything.
    """
    if shape is object:
        return True
    if isinstance(shape, type):
        return type(value) is shape
    if isinstance(shape, range):
        return type(value) is int and value in shape
    if isinstance(shape, OneOf):
        return any(fits(value, each) for each in shape.shapes)
    if isinstance(shape, ListOf):
        return isinstance(value, (list, tuple)) and all(fits(each, shape.item) for each in value)
    if isinstance(shape, DictOf):
        return isinstance(value, dict) and all(type(key) is str and fits(value[key], shape.item) for key in value)
    if isinstance(shape, tuple):
        return isinstance(value, (list, tuple)) and len(value) == len(shape) and all(map(fits, value, shape))
    if isinstance(shape, Mapping):
        return isinstance(value, dict) and all(key in value and fits(value[key], each) for key, each in shape.items())
    return type(value) is type(shape) and value == shape


def checked(value: Any, shape: object, what: str) -> Any:
    """Return `value`. If it does not have `shape`, raises ForgedMessage with `what` as the name of the value."""
    if not fits(value, shape):
        raise ForgedMessage(f"it sent a malformed {what}")
    return value


def decoded(payload: bytes, shape: object, what: str) -> Any:
    """Return the value encoded in `payload`. Raises ForgedMessage if there is none, or one of another shape."""
    # Imported here: code that only starts a process decodes nothing.
    from replaydbg.log.coding.decode import Malformed

    try:
        value = decode_value(payload)
    except (Malformed, RecursionError, ValueError) as error:
        raise ForgedMessage(f"it sent a malformed {what}: {error}") from None
    return checked(value, shape, what)
