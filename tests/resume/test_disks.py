"""Programs lose power on a disk of their own: what it has then is copied, and they are resumed from the copy."""

from pathlib import Path

import pytest

from tests.resumes.disks import disk_round, missing_mount

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("program", ["database", "files", "threads", "server", "worker", "checkpoints"])
def test_nothing_is_lost_or_doubled(program: str, tmp_path: Path) -> None:
    if reason := missing_mount(tmp_path):
        pytest.skip(reason)

    played = disk_round(11, program, tmp_path, cuts=3)

    assert played.kills  # it may have ended before the later copies were made
