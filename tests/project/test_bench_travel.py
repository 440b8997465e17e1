"""The benchmark of travelling works, on a minimal recording; no time is asserted."""

import json
import os

import pytest

from tests.bench.journeys import JOURNEYS
from tests.bench.memory import children_of
from tests.bench.travel import WHY, Extent, Times, travel
from tests.bench.travel_report import travel_json, travel_parts

pytestmark = pytest.mark.skipif("TEST_BENCH" not in os.environ, reason="`tox -e bench` tries it before it measures")


@pytest.mark.slow
def test_a_small_journey_is_measured_in_every_way() -> None:
    journey = next(each for each in JOURNEYS if each.name == "travel-events")
    before = children_of(os.getpid())

    travelled = travel(journey, Extent(places=2, scale=0.002, timeout=60.0))
    tables = "\n".join(travel_parts([travelled]))

    assert travelled.lines > 10_000
    assert travelled.events > 200
    assert len(travelled.seek.each) == len(travelled.back.each) == len(travelled.seek.cpu) == 2
    assert min(travelled.seek.cpu) > 0
    assert [len(times.each) for times in travelled.why.values()] == [1] * len(WHY)
    assert travelled.first.answered > travelled.first.phases.first_pass > 0
    assert travelled.second > travelled.second_phases.first_pass > 0
    assert all(held.processes >= travelled.checkpoints and held.total > 0 for held in travelled.memory.values())
    assert tables.count("travel-events") == 2 + len(WHY) + len(travelled.memory)
    assert json.loads(json.dumps(travel_json(travelled)))["percentiles_ms"]["seek"]["p50"] > 0
    assert children_of(os.getpid()) == before


@pytest.mark.slow
def test_journeys_of_a_given_time_are_as_long_as_it() -> None:
    journey = next(each for each in JOURNEYS if each.name == "travel-compute")

    travelled = travel(journey, Extent(places=1, scale=0.002, timeout=60.0))

    assert travelled.rounds > 1
    assert travelled.events < 1000


def test_percentiles_of_few_and_of_many() -> None:
    assert Times(()).percentile(50) is None
    assert Times((3.0,)).percentile(95) == 3.0
    assert Times(tuple(map(float, range(101)))).percentile(95) == 95.0
