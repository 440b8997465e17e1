"""However a program ends, its replay ends so: exit code, signal, traceback, handlers, late crossings."""

import pytest

from tests.replay_cases import Case, cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("exit"))
def test_end_replays(case: Case) -> None:
    case.check()
