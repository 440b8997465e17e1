"""Variables, identities, users, platform, locale and resources come from the recording."""

import pytest

from tests.harness.replay_cases import Case, cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("environment"))
def test_environment_replays(case: Case) -> None:
    case.check()
