"""A recorded program starts as the interpreter starts it, and a replay starts it the same way again."""

import pytest

from tests.harness.replay_cases import Case, cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("startup"))
def test_start_replays(case: Case) -> None:
    case.check()
