"""Predict the columns of a snapshot from an earlier one: the same functions as in native/graph/changes.c."""

from __future__ import annotations

from array import array
from itertools import islice
from operator import sub
from typing import Any


def degrees(first_edge: array[int]) -> array[int]:
    """Return the number of edges of each node."""
    return array("I", map(sub, islice(first_edge, 1, None), first_edge))


def other_bits(one: array[Any], other: array[Any]) -> bytes:
    """Return the bits that differ between two columns. Raises ValueError if they are not equally long."""
    length = len(one) * one.itemsize
    if len(other) * other.itemsize != length:
        raise ValueError("the snapshot's columns are not equally long")
    bits = int.from_bytes(one.tobytes(), "little") ^ int.from_bytes(other.tobytes(), "little")
    return bits.to_bytes(length, "little")


def renumbered(column: array[int], table: array[int], mask: int, kind: int, shift: int) -> array[int]:
    """Return a column whose number above the lowest `shift` bits is replaced by its entry in the table.

    Only where the bits under `mask` are `kind`. Raises IndexError.
    """
    low = (1 << shift) - 1
    changed = {
        each: table[each >> shift] << shift | each & low if each & mask == kind else each for each in set(column)
    }
    try:
        return array("I", map(changed.__getitem__, column))
    except OverflowError:
        raise IndexError("a number leads out of its table") from None
