"""The benchmark of matching works, on small groups."""

from __future__ import annotations

import pytest

from tests.bench.matching import KINDS, measure_matching

pytestmark = pytest.mark.slow


def test_small_groups_are_matched() -> None:
    costs = measure_matching(1, 60.0, transfers=3_000)

    assert costs.seconds.keys() == costs.megabytes.keys() == KINDS.keys()
    assert all(each > 0.0 for each in costs.seconds.values())
    assert "target" in costs.as_text()
