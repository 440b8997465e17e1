"""The expected time of a resumption."""

import pytest

from replaydbg.recovery.group_plan import seconds_together, total_cost
from replaydbg.render.resume_text import clock_lines
from replaydbg.resume.plan import RecoveryCost


@pytest.mark.parametrize(("cpu_ms", "seconds"), [(0, 0.94), (42, 0.94), (3000, 3.9)])
def test_reading_the_log_and_replaying_it(cpu_ms: int, seconds: float) -> None:
    """As measured with 300,000 events, docs/explanation/cost.md: 3.12 us of CPU time for each."""
    assert RecoveryCost(300_000, cpu_ms, 1).seconds == pytest.approx(seconds, rel=0.02)


@pytest.mark.parametrize(("processors", "seconds"), [(1, 6.0), (2, 4.0), (8, 4.0)])
def test_the_replays_of_a_group_run_at_once(processors: int, seconds: float) -> None:
    costs = [RecoveryCost(0, 4000, 10), RecoveryCost(0, 2000, 20)]

    assert seconds_together(costs, processors) == seconds
    assert total_cost(costs) == RecoveryCost(0, 6000, 30)


def test_the_logs_of_a_group_are_read_one_by_one() -> None:
    cost = RecoveryCost(100_000, 0, 1)

    assert seconds_together([cost, cost], 8) == pytest.approx(2 * cost.reading_seconds + cost.replay_seconds)


def test_clocks_of_processes_that_stood_still_since_different_times() -> None:
    second = 1_000_000_000

    assert clock_lines([3 * second]) == ["  clock      monotonic clocks: paused for 3 s"]
    assert clock_lines([3 * second, 130 * second]) == [
        "  clock      monotonic clocks: paused for 3 s to 2 min, by process"
    ]
