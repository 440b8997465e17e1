"""A row of numbers as bars, one column each."""

from __future__ import annotations

from collections.abc import Sequence


def sparkline(series: Sequence[int], bars: str) -> str:
    """Return a bar for each number: from the lowest, which is still visible, to the highest. `bars` begin with none."""
    low, high = min(series), max(series)
    steps = len(bars) - 2
    if low == high:
        return bars[1] * len(series)
    return "".join(bars[1 + round(steps * (each - low) / (high - low))] for each in series)
