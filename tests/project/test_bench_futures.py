"""The benchmark of futures works, with few of them; no time is asserted."""

from __future__ import annotations

import json
import os

import pytest

from tests.bench.futures import measure_futures

pytestmark = pytest.mark.skipif("TEST_BENCH" not in os.environ, reason="`tox -e bench` tries it before it measures")


@pytest.mark.slow
def test_futures_are_measured_in_every_way() -> None:
    costs = measure_futures(1, 120.0, many=64)

    assert (len(costs.rates), len(costs.curves), len(costs.early)) == (1, 1, 1)
    assert costs.stored > 0 and costs.moments >= 10 and costs.farthest == 0
    assert "a second of processor time" in costs.as_text()
    assert json.loads(json.dumps(costs.as_json()))["share"] == costs.share
