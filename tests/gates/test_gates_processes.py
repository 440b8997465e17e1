"""Children are seen from the parent: their ids, outputs and exit codes come from the recording."""

import pytest

from tests.harness.replay_cases import Case, cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("processes"))
def test_children_replay(case: Case) -> None:
    case.check()
