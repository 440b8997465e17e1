"""The model of a cluster does what can be computed by hand."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scale.cluster_model import Load, simulate

FREE = Load(
    recordings=100,
    tasks_each=10,
    workers=10,
    task_seconds=1.0,
    recording_bytes=0.0,
    scheduler_seconds=0.0,
    link_bytes=1e9,
    worker_link_bytes=1e9,
    cache_recordings=10,
)


def test_workers_that_wait_for_nothing_are_busy() -> None:
    assert simulate(FREE).efficiency > 0.95
    assert simulate(FREE).limit == "workers"


def test_a_slow_scheduler_decides() -> None:
    outcome = simulate(replace(FREE, scheduler_seconds=1.0))

    assert outcome.seconds == pytest.approx(1000, rel=0.02)
    assert (outcome.limit, round(outcome.scheduler, 1)) == ("scheduler", 1.0)


def test_a_slow_link_decides() -> None:
    outcome = simulate(replace(FREE, recording_bytes=1e10, worker_link_bytes=1e12))

    assert outcome.seconds == pytest.approx(outcome.fetched * 10, rel=0.05)
    assert outcome.limit == "link"


def test_each_recording_is_fetched_once_while_there_are_others() -> None:
    assert 100 <= simulate(FREE).fetched <= 100 + 10


def test_lost_workers_repeat_and_lose_nothing() -> None:
    outcome = simulate(replace(FREE, lost_every=1.0))

    assert outcome.repeated > 20
    assert outcome.efficiency > 0.5


@settings(max_examples=30)
@given(workers=st.integers(1, 40), tasks=st.integers(1, 20), cost=st.floats(0, 0.1), size=st.floats(0, 1e9))
def test_no_part_is_busy_longer_than_it_takes(workers: int, tasks: int, cost: float, size: float) -> None:
    load = replace(FREE, workers=workers, tasks_each=tasks, scheduler_seconds=cost, recording_bytes=size)

    outcome = simulate(load)

    assert max(outcome.efficiency, outcome.scheduler, outcome.link) <= 1 + 1e-9
    assert outcome.seconds >= 100 * tasks * cost - 1e-9
    more = simulate(replace(load, scheduler_seconds=cost + 1.0))
    assert more.seconds >= outcome.seconds
