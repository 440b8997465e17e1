"""Objects have the same identity in a replay: their ids, hashes, addresses in texts, and the order of sets of them."""

import pytest

from tests.replay_cases import Case, cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("identity"))
def test_identity_replays(case: Case) -> None:
    case.check()
