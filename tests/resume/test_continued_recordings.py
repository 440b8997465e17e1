"""What a resumed program wrote is an ordinary recording: the line that made it fail is found in its live part."""

import json
from pathlib import Path

import pytest

from tests.resume.test_resume_command import record_killed, replaydbg

pytestmark = pytest.mark.slow

_FAILS_LATER = """import os, signal
total = 0
for turn in range(40):
    os.stat("program.py")
    if turn == 20:
        os.kill(os.getpid(), signal.SIGKILL)
    if turn == 30:
        total = -1000
    total += turn
print(total)
"""


def test_it_is_bisected(tmp_path: Path) -> None:
    record_killed(tmp_path, _FAILS_LATER)
    resumed = replaydbg(tmp_path, "resume", "one.rdbg", "--in-flight=skip", "-o", "two.rdbg")
    assert (resumed.status, resumed.stdout) == (0, b"-655\n"), resumed

    found = replaydbg(tmp_path, "bisect", "snapshots", "two.rdbg", "--bad", "total < 0", "--json")

    assert found.status == 1, found
    assert json.loads(found.stdout)["culprit"]["line"] == 8, found
