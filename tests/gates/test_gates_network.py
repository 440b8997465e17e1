"""Sockets of a single-lane program are answered from the recording; in a replay they are connected to nothing."""

import pytest

from tests.harness.replay_cases import Case, cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("network"))
def test_network_replays(case: Case) -> None:
    case.check()
