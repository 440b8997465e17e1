"""Limits on the expansion of compressed parts of a recording: in proportion to the bytes that are really stored."""

from __future__ import annotations

import json
import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FLOOR = 64 << 20
"""Bytes to which any part may expand, however small it is in the file."""
RATIO = 64
"""Bytes to which a stored byte may expand, beyond FLOOR: texts reach 10, and larger contents are stored
uncompressed.
"""
LOG_FLOOR = 768 << 20
"""The same for a log that a replay maps: one call, repeated ten million times, compresses to nearly nothing."""
MOST_CONTAINERS = 1 << 19
"""Objects and lists in one JSON text: each takes 200 bytes of memory, and a million of them fit into 3 MB."""
MOST_ELEMENTS = 1 << 20
"""Elements of them. A recording has one for each source file, environment variable and block of 1 MiB."""
MOST_DIGITS = 40
"""Digits of an integer: numbers of 64 bits have 20."""


def allowance(stored: int, *, floor: int = FLOOR) -> int:
    """Return how many bytes `stored` bytes of a recording may expand to."""
    return max(floor, RATIO * stored)


def load_json(data: bytes) -> Any:
    """Return the content of a JSON text; its numbers are finite, and no integer is longer than 40 digits.

    Raises ValueError, also for one that would take much more memory than its length. A few kilobytes of a compressed
    section can be 30 MB of brackets, which are a gigabyte of empty lists.
    """
    if data.count(b"[") + data.count(b"{") > MOST_CONTAINERS or data.count(b",") > MOST_ELEMENTS:
        raise ValueError(f"it has more than {MOST_CONTAINERS:,} objects or {MOST_ELEMENTS:,} elements")
    try:
        return json.loads(data, parse_constant=_no_number, parse_float=_finite, parse_int=_integer)
    except RecursionError:
        # json's own response to brackets nested too deeply.
        raise ValueError("it is nested too deeply") from None


def _no_number(text: str) -> float:
    raise ValueError(f"it has a number {text}")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("it has a number without bounds")
    return value


def _integer(text: str) -> int:
    # As a float, too, it must not be out of range.
    if len(text) > MOST_DIGITS:
        raise ValueError("it has an integer that is too long")
    return int(text)
