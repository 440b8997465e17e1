"""How often something fails, from how often it did."""

from __future__ import annotations

import math

CONFIDENCE = 0.95
_DEVIATIONS = 1.959963984540054
"""Of the normal distribution, for CONFIDENCE on both sides."""


def interval(failures: int, runs: int) -> tuple[float, float]:
    """Return between what the rate of failures lies with a confidence of CONFIDENCE (Wilson's score interval).

    The usual one, around the share that was seen, is nonsense where that is 0 or 1.
    """
    if not runs:
        return 0.0, 1.0
    share, square = failures / runs, _DEVIATIONS**2
    middle = (share + square / (2 * runs)) / (1 + square / runs)
    half = _DEVIATIONS * math.sqrt(share * (1 - share) / runs + square / (4 * runs * runs)) / (1 + square / runs)
    low = 0.0 if failures == 0 else max(0.0, middle - half)
    high = 1.0 if failures == runs else min(1.0, middle + half)
    return low, high
