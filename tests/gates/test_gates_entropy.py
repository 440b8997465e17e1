"""Every source of entropy comes from the recording."""

import pytest

from tests.harness.replay_cases import Case, cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("entropy"))
def test_entropy_replays(case: Case) -> None:
    case.check()
