"""Variables, identities, users, platform, locale and resources come from the recording."""

import pytest

from tests.harness.replay_cases import Case, cases
from tests.harness.sanitizer import IS_SANITIZED

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("environment"))
def test_environment_replays(case: Case) -> None:
    if IS_SANITIZED and case.env.get("LC_ALL") == "C.UTF-8":
        pytest.skip("the sanitizer's strcmp(), by which this locale compares, returns other numbers")
    case.check()
