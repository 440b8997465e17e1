"""The benchmark of bisections works, on a short run."""

from __future__ import annotations

import os

import pytest

from tests.bench.bisections import measure_bisections

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("TEST_BENCH" not in os.environ, reason="`tox -e bench` tries it before it measures"),
]


def test_a_short_run_is_measured() -> None:
    costs = measure_bisections(60.0, lines=20_000, checkpoints=4, question=0.005)

    assert 20_000 <= costs.lines < 60_000
    assert costs.checkpoints > 1
    assert costs.slow_looks > 1
    assert 0.0 < costs.slow <= costs.slow_line
    assert "target 5" in costs.as_text()
    assert costs.as_json()["lines"] == costs.lines
