"""The interval of a median contains it, and gets smaller with more values."""

from __future__ import annotations

from statistics import median

from hypothesis import given
from hypothesis import strategies as st

from tests.bench.service import median_interval


@given(st.lists(st.floats(0.5, 2), min_size=1, max_size=200))
def test_the_median_is_in_its_interval(values: list[float]) -> None:
    found = median_interval(values)

    assert min(values) <= found.low <= found.median <= found.high <= max(values)
    assert found.median == median(values)


def test_the_bounds_are_those_of_the_binomial_distribution() -> None:
    # Tables of the sign test: of 20 values the 6th and the 15th, of 100 the 40th and the 61st.
    assert median_interval(range(1, 21))[1:] == (6, 15)
    assert median_interval(range(1, 101))[1:] == (40, 61)
    # Of five values, all lie on one side of the median in one case of 16: their range is the best that there is.
    assert median_interval(range(1, 6))[1:] == (1, 5)
