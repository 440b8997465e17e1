"""Programs that reach into the interpreter or the C library by ctypes behave the same recorded and replayed."""

import pytest

from tests.harness.replay_cases import Case, cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("foreign"))
def test_foreign_calls_replay(case: Case) -> None:
    case.check()
