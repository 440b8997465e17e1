"""The benchmark of snapshots works, on a small heap."""

from __future__ import annotations

import pytest

from tests.bench.heaps import measure_heap

pytestmark = pytest.mark.slow


def test_a_small_heap_is_measured() -> None:
    costs = measure_heap(1, 60.0, objects=8_000)

    assert 20_000 < costs.objects < 60_000
    assert costs.changes > 0
    assert costs.difference > 0.0
    assert 0.0 < costs.bytes_per_object < 40.0
    assert "target 0.4" in costs.as_text()
    assert costs.as_json()["objects"] == costs.objects
