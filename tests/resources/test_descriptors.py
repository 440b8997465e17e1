"""The table of descriptors, computed from the event log, is what the kernel had (/proc/self/fd and fdinfo)."""

from __future__ import annotations

from pathlib import Path

import pytest

from replaydbg.log.reader import open_recording
from tests.harness.recording import record_file
from tests.resources.proc_oracle import differences, looks

pytestmark = pytest.mark.slow

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize("seed", range(10))
def test_random_operations_leave_the_descriptors_that_the_kernel_has(tmp_path: Path, seed: int) -> None:
    """Numbers, flags, offsets, paths and removals, after operations in a random order."""
    recorded = record_file(PROGRAMS / "descriptors_at_random.py", tmp_path, str(seed))

    with open_recording(recorded) as recording:
        found = list(differences(recording))
        count = sum(len(kernel) for _, kernel in looks(recording))

    assert found == []
    assert count > 10


@pytest.mark.parametrize("seed", range(4))
def test_threads_that_open_and_close_at_once(tmp_path: Path, seed: int) -> None:
    """The event of a close can come after that of the next call that got the number."""
    recorded = record_file(PROGRAMS / "descriptors_in_threads.py", tmp_path, str(seed))

    with open_recording(recorded) as recording:
        assert list(differences(recording)) == []
