"""Processes of a group that are killed while it is resumed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from replaydbg.log.reader import open_recording
from tests.harness.process import run
from tests.harness.surroundings import without_steering
from tests.harness.waiting import wait_until
from tests.recovery.killed_groups import record_killed, replaydbg, rows_of

pytestmark = pytest.mark.slow

_PROGRAM = """import os, sys
begin, go = os.pipe()
told, tell = os.pipe()
child = os.fork()
if not child:
    os.close(go)
    sum(range({count}))
    os.write(tell, b"x")
    os.read(begin, 1)
    os._exit(0)
os.read(told, 1)
open("ready", "w").close()
sys.stdin.readline()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

# Kills the second process when all have reported that they are ready, before they may run.
_RESUMES = """import os, signal
from pathlib import Path
from replaydbg.log.group import page_rows
from replaydbg.recovery.group_launcher import GroupListener, resume_group
from tests.harness.waiting import process_fields, wait_until

def kill(plan):
    pid = page_rows(Path("two.rdbgs"))[0][1].pid
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: process_fields(pid)[0] == "Z")

result = resume_group(Path("one.rdbgs"), output=Path("two"), listener=GroupListener(goes_live=kill))
print(result.status, flush=True)
"""


def test_a_process_that_is_killed_right_before_it_runs(tmp_path: Path) -> None:
    record_killed(tmp_path, _PROGRAM.format(count=1))
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(tmp_path / "store"), "PYTHONPATH": str(Path.cwd())}

    resumed = run([sys.executable, "-c", _RESUMES], cwd=tmp_path, env=env, timeout=60)

    assert (resumed.status, resumed.stdout) == (0, b"-9\n0\n"), resumed


def test_a_process_that_is_killed_in_its_replay(tmp_path: Path) -> None:
    """It computes for a while before it is due to go live."""
    record_killed(tmp_path, _PROGRAM.format(count=50_000_000))
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(tmp_path / "store")}
    command = [sys.executable, "-m", "replaydbg", "resume", "one", "-o", "two"]
    process = subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    directory = tmp_path / "two.rdbgs"
    try:
        wait_until(lambda: len(rows_of(directory)) == 2 and rows_of(directory)[1].pid)
        os.kill(rows_of(directory)[1].pid, signal.SIGKILL)

        out, errors = process.communicate(timeout=60)
    finally:
        process.kill()

    assert (process.returncode, out) == (2, b""), errors
    assert b"one.rdbgs/2': its replay ended before it was due to go live." in errors
    assert not directory.exists()


# The first process has more events than the other one, which is killed while it waits.
_ENDS = """import os, sys
if not os.fork():
    open("ready", "w").close()
    sys.stdin.readline()
    open("went on", "w").close()
    os._exit(0)
for _ in range(100):
    os.urandom(1)
"""


def test_one_process_was_killed_after_its_last_event(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_ENDS)
    assert replaydbg(tmp_path, "record", "-q", "-o", "whole", "program.py").status == 0
    events = _events(tmp_path / "whole.rdbgs")
    (tmp_path / "ready").unlink()
    (tmp_path / "went on").unlink()
    record_killed(tmp_path, _ENDS, killed_at=events)
    assert _events(tmp_path / "one.rdbgs") == events

    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert resumed.status == 0, resumed
    assert (tmp_path / "went on").exists()
    assert _events(tmp_path / "two.rdbgs") == events
    assert replaydbg(tmp_path, "replay", "two").status == 0
    assert replaydbg(tmp_path, "resume", "two").status == 2  # it has ended


def _events(group: Path) -> int:
    """Return how many events the first process has."""
    with open_recording(group / "1.rdbg") as recording:
        assert recording.log_header is not None
        return recording.log_header.crossings
