"""Estimate a failure rate from the number of failures."""

from __future__ import annotations

import math

CONFIDENCE = 0.95
_DEVIATIONS = 1.959963984540054
"""Standard deviations of the normal distribution for CONFIDENCE on both sides."""


def interval(failures: int, runs: int) -> tuple[float, float]:
    """Return the bounds of the failure rate with a confidence of CONFIDENCE (Wilson's score interval).

    The usual interval, around the observed share, is useless if that is 0 or 1.
    """
    if not runs:
        return 0.0, 1.0
    share, square = failures / runs, _DEVIATIONS**2
    middle = (share + square / (2 * runs)) / (1 + square / runs)
    half = _DEVIATIONS * math.sqrt(share * (1 - share) / runs + square / (4 * runs * runs)) / (1 + square / runs)
    low = 0.0 if failures == 0 else max(0.0, middle - half)
    high = 1.0 if failures == runs else min(1.0, middle + half)
    return low, high
