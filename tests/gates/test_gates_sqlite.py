"""SQLite's answers, its clock and its entropy come from the recording."""

import pytest

from tests.harness.replay_cases import Case, cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("sqlite"))
def test_database_replays(case: Case) -> None:
    case.check()
