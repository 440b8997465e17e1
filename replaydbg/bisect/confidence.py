"""The number of passing runs that shows that an intermittent failure is absent."""

from __future__ import annotations


def chance_of_passing(runs: int, *, failed: int, measured: int) -> float:
    """Return the probability that `runs` runs all pass where `failed` of `measured` runs failed.

    The rate behind `failed` of `measured` is not known exactly. Every rate counts as equally likely before the
    measurement (Laplace's rule of succession), so the chance of each further pass is (passes so far + 1) of (runs so
    far + 2). Taking `failed / measured` for the rate itself would trust few runs too much.
    """
    chance = 1.0
    for index in range(runs):
        chance *= (measured - failed + 1 + index) / (measured + 2 + index)
    return chance


def runs_needed(*, failed: int, measured: int, confidence: float, most: int = 100_000) -> int:
    """Return after how many passing runs a failure as measured would have shown with `confidence`.

    With a single run measured, one run is enough: then the failure is not known to be intermittent. Returns `most` if
    it takes more. Raises ValueError unless `failed` is from 1 to `measured` and `confidence` between 0 and 1.
    """
    if not 1 <= failed <= measured or not 0 < confidence < 1:
        raise ValueError(f"{failed} failed of {measured}, confidence {confidence}")
    if measured == 1:
        return 1
    chance = 1.0
    for runs in range(1, most):
        chance *= (measured - failed + runs) / (measured + 1 + runs)
        if chance <= 1 - confidence:
            return runs
    return most
