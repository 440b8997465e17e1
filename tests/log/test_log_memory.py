"""The memory of a recorded and of a replayed program does not grow with its events."""

import os
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

import pytest

from replaydbg.replay import launcher, unpacked_logs
from tests.harness import tool
from tests.harness.process import Finished, run
from tests.harness.sanitizer import IS_SANITIZED
from tests.harness.surroundings import without_steering

MEGABYTES = 300

# Every byte goes to the log. What of the log is mapped counts as memory of files, or as shared on some file systems.
PROGRAM = f"""
import os
import re

def held():
    with open("/proc/self/status") as file:
        return sum(int(each) for each in re.findall(r"(?:RssFile|RssShmem):\\s*(\\d+)", file.read()))

before = held()
for _ in range({MEGABYTES}):
    os.urandom(1 << 20)
print("grown by", (held() - before) // 1024, "MiB")
"""


# A process begins as a copy of the one that starts it, and its peak with that one's memory.
STARTER = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
"""


def _run(command: list[str], cwd: Path) -> Finished:
    return run(command, cwd=cwd, env=without_steering(os.environ), timeout=120.0)


@pytest.mark.skipif(IS_SANITIZED, reason="the sanitizer holds most of this memory")
@pytest.mark.slow
def test_a_program_holds_little_of_its_log(tmp_path: Path) -> None:
    (tmp_path / "reads.py").write_text(PROGRAM)
    recording = tmp_path / "reads.rdbg"

    recorded = _run(tool.record(sys.executable, recording, ["reads.py"]), tmp_path)
    replayed = subprocess.run(
        [sys.executable, "-c", STARTER, *tool.replay(sys.executable, recording)],
        check=True,
        capture_output=True,
        text=True,
    )

    assert recorded.stdout.startswith(b"grown by ")
    assert int(recorded.stdout.split()[2]) < 40
    assert int(replayed.stdout) < MEGABYTES // 2


@pytest.mark.slow
def test_a_large_log_is_unpacked_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "reads.py").write_text("import os\nprint(len(os.urandom(1 << 16)))\n")
    recording = tmp_path / "reads.rdbg"
    _run(tool.record(sys.executable, recording, ["reads.py"]), tmp_path)
    made: list[str] = []
    monkeypatch.setattr(unpacked_logs, "MOST_IN_MEMORY", 1 << 15)
    monkeypatch.setattr(unpacked_logs, "LARGE_FILES", tmp_path)
    plain = unpacked_logs.memory_file

    def noted(name: str) -> BinaryIO:
        made.append(name)
        return plain(name)

    monkeypatch.setattr(unpacked_logs, "memory_file", noted)

    result = launcher.replay(recording)

    assert "log" not in made
    assert "world" in made or "content" in made
    assert result.divergence is None
