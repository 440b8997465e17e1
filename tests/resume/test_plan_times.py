"""The expected time of a resumption."""

import pytest

from replaydbg.resume.plan import RecoveryCost


@pytest.mark.parametrize(("cpu_ms", "seconds"), [(0, 0.94), (42, 0.94), (3000, 3.9)])
def test_reading_the_log_and_replaying_it(cpu_ms: int, seconds: float) -> None:
    """As measured with 300,000 events, docs/explanation/cost.md: 3.12 us of CPU time for each."""
    assert RecoveryCost(300_000, cpu_ms, 1).seconds == pytest.approx(seconds, rel=0.02)
