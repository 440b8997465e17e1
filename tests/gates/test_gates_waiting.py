"""Readiness in select, poll, epoll and selectors comes from the recording."""

import pytest

from tests.harness.replay_cases import Case, cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("waiting"))
def test_waiting_replays(case: Case) -> None:
    case.check()
