"""Programs that reach into the interpreter or the C library by ctypes do recorded, and in a replay, what they do without the tool."""

import pytest

from tests.replay_cases import Case, cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("foreign"))
def test_foreign_calls_replay(case: Case) -> None:
    case.check()
