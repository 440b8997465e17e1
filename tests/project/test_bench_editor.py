"""The benchmark of the server for editors works, on a minimal recording; no time is asserted."""

from __future__ import annotations

import json
import os

import pytest

from tests.bench.editor import measure_editor

pytestmark = pytest.mark.skipif("TEST_BENCH" not in os.environ, reason="`tox -e bench` tries it before it measures")


@pytest.mark.slow
def test_an_editor_is_measured_in_every_way() -> None:
    costs = measure_editor(1, 60.0, places=2, rounds=2000)

    assert [len(times) for times in (costs.initialize, costs.opened)] == [1, 1]
    assert [len(times) for times in (costs.stopped, costs.shown, costs.variables)] == [2, 2, 2]
    assert "1,000 variables" in costs.as_text()
    assert json.loads(json.dumps(costs.as_json()))["lines"] == 10_000
