"""The order and the range of the numbers in a column: the same functions as in native/graph/ranges.c."""

from __future__ import annotations

from array import array
from itertools import islice
from operator import le, lt
from typing import Any


def rises(column: array[Any], *, is_strict: bool) -> bool:
    """Whether no number of a column is lower than the one before it; if strict, nor equal to it."""
    return all(map(lt if is_strict else le, column, islice(column, 1, None)))


def highest(column: array[int], mask: int, kind: int) -> int:
    """Return the highest number whose bits under `mask` are `kind`; -1: there is none."""
    return max((each for each in column if each & mask == kind), default=-1)
