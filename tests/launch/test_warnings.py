"""Warnings that gated C functions issue themselves are issued in a replay too, with the same effects."""

import pytest

from tests.harness.replay_cases import Case, cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("warnings"))
def test_warnings_replay(case: Case) -> None:
    case.check()
