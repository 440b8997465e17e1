"""The width of what is printed. Help texts need it, too, so it imports next to nothing."""

from __future__ import annotations

import os

WIDTH = 80
"""Columns if the output is not a terminal."""
_WIDEST = 1000


def terminal_width() -> int:
    """Return the width of the output in columns: that of the variable COLUMNS, else of the terminal, or WIDTH."""
    columns = os.environ.get("COLUMNS", "").lstrip("0")
    if columns.isdecimal():
        return min(int(columns[:9]), _WIDEST)
    try:
        # A terminal that nobody has given a size has 0 columns.
        return os.get_terminal_size(1).columns or WIDTH
    except OSError:  # no terminal
        return WIDTH
