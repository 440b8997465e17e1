"""Files, directories, descriptors and maps come from the recording, though the disk has changed."""

import pytest

from tests.harness.replay_cases import Case, cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", cases("files"))
def test_files_replay(case: Case) -> None:
    case.check()
