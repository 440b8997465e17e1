"""An event loop takes the same turns in a replay: the order of ready callbacks, timers and tasks."""

import pytest

from tests.harness.replay_cases import Case, cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("asyncio"))
def test_asyncio_replays(case: Case) -> None:
    case.check()
