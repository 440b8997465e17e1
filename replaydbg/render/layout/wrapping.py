"""Widths of a table's columns, and cells wrapped in them: at spaces, else between the parts of a path.

Rich would fold a long word wherever its column ends, and narrow a column of names while another one has room.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.cells import cell_len, chop_cells

NARROWEST = 4
"""Columns that even a column of long names keeps."""

_PARTS = re.compile(r"(?<=/)(?=[^/])|(?<=.)(?=\.[^\W\d])|(?<=.)(?=\[)")
"""Where a word may be broken: after a slash, before an attribute or an item."""


def column_widths(cells: Sequence[Sequence[str]], fixed: Sequence[bool], available: int) -> list[int]:
    """Return the width of each column, given its cells, the head first; `fixed`: its cells are never wrapped.

    No part of a name is cut as long as there is room for the longest ones.
    """
    whole = [max(map(cell_len, column)) for column in cells]
    least = [
        max([_longest_part(column[:1]), *map(cell_len, column[1:])]) if is_fixed else _longest_part(column)
        for column, is_fixed in zip(cells, fixed, strict=True)
    ]
    if sum(whole) <= available:
        return whole
    if sum(least) <= available:
        return _levelled(least, whole, available)
    lowest = [width if is_fixed else min(width, NARROWEST) for width, is_fixed in zip(least, fixed, strict=True)]
    return _levelled(lowest, least, available)


def _levelled(lowest: Sequence[int], highest: Sequence[int], available: int) -> list[int]:
    """Return widths between these: the wider ones are narrowed to one width, which is as large as possible."""

    def at(level: int) -> list[int]:
        return [max(low, min(high, level)) for low, high in zip(lowest, highest, strict=True)]

    level = max(highest)
    while level > 0 and sum(at(level)) > available:
        level -= 1
    found = at(level)
    # What is left over goes to the first ones that can use it.
    for place, high in enumerate(highest):
        found[place] += max(min(high - found[place], available - sum(found)), 0)
    return found


def _longest_part(texts: Sequence[str]) -> int:
    return max((cell_len(part) for text in texts for word in text.split() for part in _PARTS.split(word)), default=0)


def wrapped(text: str, width: int) -> list[str]:
    """Return `text` in lines of at most `width` columns; only a part of a word that is longer is cut."""
    lines = [""]
    for piece in _pieces(text):
        used = cell_len(lines[-1])
        if used + cell_len(piece.rstrip()) <= width:
            lines[-1] += piece
            continue
        if lines[-1]:
            lines.append("")
        *first, last = chop_cells(piece.strip(), width) or [""]
        lines[-1:] = [*first, last + piece[len(piece.rstrip()) :]]
    return [line.rstrip() for line in lines]


def _pieces(text: str) -> Iterator[str]:
    """Yield the parts of the words, each with the space behind it."""
    for word in re.findall(r"\s*\S+\s*", text) or [""]:
        yield from _PARTS.split(word)
