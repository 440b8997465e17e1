"""The expected time of a resumption."""

import pytest

from replaydbg.resume.plan import RecoveryCost


@pytest.mark.parametrize(("cpu_ms", "seconds"), [(0, 2.51), (42, 2.51), (3000, 5.46)])
def test_reading_the_log_and_replaying_it(cpu_ms: int, seconds: float) -> None:
    """As measured with 300,000 events, docs/explanation/cost.md: 8.36 us of CPU time for each."""
    assert RecoveryCost(300_000, cpu_ms, 1).seconds == pytest.approx(seconds, rel=0.02)
