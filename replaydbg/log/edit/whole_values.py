"""The values of a log that are secrets, found in its bytes: cut off where the values end, and put together.

The forms of secrets are searched in the bytes of a log, which is fast, but these have the format's framing between the
values. Where something is found, the log is decoded, and what is found ends where the value does in which it begins.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

from replaydbg.log.entries.leaves import Content, Leaf
from replaydbg.secrets.secret_rules import SecretPlace
from replaydbg.secrets.secret_values import is_secret_value

_CONTINUES = re.compile(rb"[^\s\"'&;,<>\\\x00-\x1f\x7f]{1,500}")
"""What a value may go on with in the next piece that the program received."""
_SHORTEST_REST = 8
"""Bytes of such a rest that may be a path, or whatever else is no secret: then it belongs to something else."""


def in_leaves(found: Iterable[SecretPlace], leaves: Iterable[Leaf]) -> set[bytes]:
    """Return the secrets among `found`, which is in the order of a log's bytes, by its leaves.

    Behind the last leaf, in a log that cannot be decoded to its end, they stay as they were found.
    """
    secrets: set[bytes] = set()
    pair = _Neighbours(leaves)
    for place in found:
        pair.advance(place.at)
        if pair.leaf is None:
            parts = iter((place.text,))
        elif pair.leaf.start < place.at + len(place.text):
            parts = _in_leaf(place.at, place.text, pair.leaf, pair.following)
        else:
            continue
        secrets.update(filter(place.counts, parts))
    return secrets


def _in_leaf(at: int, text: bytes, leaf: Leaf, following: Leaf | None) -> Iterator[bytes]:
    """Yield the part of what was found at `at` that is in `leaf`; if the value goes on, also all of it and its rest."""
    part = text[max(leaf.start - at, 0) : leaf.end - at]
    yield part
    if at + len(text) < leaf.end or following is None:
        return
    found = _CONTINUES.match(following.data)
    rest = found[0] if found is not None else b""
    if part and rest and (len(rest) < _SHORTEST_REST or is_secret_value(rest)):
        yield part + rest
        if len(rest) >= _SHORTEST_REST and not rest.isalpha():
            yield rest


def in_contents(found: Iterable[SecretPlace], contents: Iterable[Content]) -> set[bytes]:
    """Return the secrets among `found`, in order, by the contents of files that lie one behind the other.

    One that goes on behind the end of a content counts both up to there and as a whole.
    """
    ends = sorted({each.end for each in contents})
    secrets: set[bytes] = set()
    for place in found:
        number = bisect_right(ends, place.at)
        part = place.text[: ends[number] - place.at] if number < len(ends) else place.text
        secrets.update(filter(place.counts, (part, place.text)))
    return secrets


class _Neighbours:
    """A leaf and the one behind it."""

    def __init__(self, leaves: Iterable[Leaf]) -> None:
        self._leaves: Iterator[Leaf | None] = iter(leaves)
        self.leaf: Leaf | None = next(self._leaves, None)
        self.following: Leaf | None = next(self._leaves, None)

    def advance(self, at: int) -> None:
        """Go to the first leaf that ends behind `at`."""
        while self.leaf is not None and self.leaf.end <= at:
            self.leaf, self.following = self.following, next(self._leaves, None)
