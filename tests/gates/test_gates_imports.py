"""Imports and sources come out of the recording's import world, also of modules made at run time."""

import pytest

from tests.harness.replay_cases import Case, cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("imports"))
def test_import_replays(case: Case) -> None:
    case.check()
