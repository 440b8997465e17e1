"""Children that the program forks are recordings of their own: each replays alone, exactly."""

import pytest

from tests.harness.children import assert_group_replays
from tests.harness.replay_cases import Case, cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("children"))
def test_each_process_replays_alone(case: Case) -> None:
    group = assert_group_replays(case)

    assert len([each for each in group.processes if each.how == "fork" and each.recording]) >= 1
