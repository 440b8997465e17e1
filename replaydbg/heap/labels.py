"""Steps from one object to the next, as numbers: which attribute, which item, and their Python source text."""

from __future__ import annotations

import sys
from array import array

PLAIN = 0
"""The entry in the table of strings is appended unchanged: `.price`, `['key']`, `.__closure__[0]`."""
INDEX = 1
"""An item of a list, a tuple or the like: `[3]`."""
MEMBER = 2
"""A key of a dictionary, or a member of a set, by its position: `list(x)[3]`."""
VALUE = 3
"""The value of a dictionary at a position, for a key that has no short source text: `list(x.values())[3]`."""
REFERENT = 4
"""A reference of an object written in C, in the collector's order: `gc.get_referents(x)[3]`."""
KINDS = 5

MASK = 7
"""The bits of a label that are its kind."""

WEAK = 8
"""Added to a kind: a weak reference, which keeps nothing alive."""

MOST = (1 << 28) - 1
"""The highest number of a label: all further items share it."""


def label(kind: int, number: int, *, is_weak: bool = False) -> int:
    """Return the label of a step: one of the kinds above, and the index of its text or the position of the item."""
    return number << 4 | (WEAK if is_weak else 0) | kind


def kind_of(step: int) -> int:
    """Return the kind of a label."""
    return step & MASK


def number_of(step: int) -> int:
    """Return the number of a label: the index of its text, or the position of the item."""
    return step >> 4


def is_weak(step: int) -> bool:
    """Whether the label is that of a weak reference."""
    return bool(step & WEAK)


def lowest_bytes(column: array[int]) -> bytes:
    """Return the lowest byte of each number of a column of labels, or of another one."""
    data = column.tobytes()
    return data[:: column.itemsize] if sys.byteorder == "little" else data[column.itemsize - 1 :: column.itemsize]
