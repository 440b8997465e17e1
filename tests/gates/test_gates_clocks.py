"""Every clock and every time zone comes from the recording."""

import pytest

from tests.harness.replay_cases import Case, cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("clocks"))
def test_clock_replays(case: Case) -> None:
    case.check()
