"""Warnings, tracebacks and exceptions of every shape are the same in a replay."""

import pytest

from tests.harness.replay_cases import Case, cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("errors"))
def test_error_replays(case: Case) -> None:
    case.check()
