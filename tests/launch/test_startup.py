"""A recorded program starts exactly as under the plain interpreter, and so does its replay."""

import pytest

from tests.harness.replay_cases import Case, cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("startup"))
def test_start_replays(case: Case) -> None:
    case.check()
