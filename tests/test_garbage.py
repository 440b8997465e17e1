"""Collections, and the finalizers and callbacks that they run, come at the same place in a replay."""

import pytest

from tests.replay_cases import Case, cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("garbage"))
def test_garbage_replays(case: Case) -> None:
    case.check()
