"""From which cut a group goes on, and what it says of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from replaydbg.log.group import page_rows, read_group
from tests.harness.surroundings import without_steering
from tests.harness.waiting import wait_until
from tests.resume.killed_groups import replaydbg
from tests.resumes.group_rounds import kill_group

pytestmark = pytest.mark.slow

_STARTS = """import os, subprocess, sys
if sys.argv[1:]:
    sys.stdin.readline()
    print(subprocess.run([sys.executable, "-c", "print('grandchild')"], capture_output=True).stdout.decode(), end="")
    sys.exit()
child = subprocess.Popen([sys.executable, "program.py", "child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdin.write(b"go\\n")
child.stdin.close()
print(child.stdout.read().decode(), end="")
print(child.wait())
"""


def test_a_python_that_had_not_begun_is_started_again(tmp_path: Path) -> None:
    """It is killed as soon as it has a row among the processes."""
    (tmp_path / "program.py").write_text(_STARTS)
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(tmp_path / "store")}
    command = [sys.executable, "-m", "replaydbg", "record", "-q", "-o", "one", "program.py"]
    directory = tmp_path / "one.rdbgs"
    process = subprocess.Popen(command, cwd=tmp_path, env=env, start_new_session=True)
    wait_until(lambda: directory.exists() and len(page_rows(directory)[0]) == 3 and page_rows(directory)[0][2].pid)
    kill_group(directory)
    process.communicate(timeout=60)
    wait_until(lambda: read_group(directory).is_complete)
    assert read_group(directory).processes[2].recording is None

    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert (resumed.status, resumed.stdout) == (0, b"grandchild\n0\n"), resumed
    assert b"replay two" not in resumed.stderr and b"two.rdbgs\n" in resumed.stderr, resumed
