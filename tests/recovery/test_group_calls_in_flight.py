"""The calls in flight of a group: the plan has them, and they can be skipped."""

import json
from pathlib import Path

import pytest

from replaydbg.log.group import read_group
from tests.harness.waiting import wait_until
from tests.recovery.killed_groups import replaydbg

pytestmark = pytest.mark.slow

# It ends its whole group; what comes after it runs only if that call is skipped.
# The child waits by then, and cannot notice that its parent was killed first.
_KILLS_ALL = """import os, signal
os.setpgid(0, 0)
reads, writes = os.pipe()
told, tell = os.pipe()
child = os.fork()
if not child:
    os.write(tell, b"x")
    os.read(reads, 1)
    os._exit(5)
os.read(told, 1)
while open(f"/proc/{child}/stat").read().rpartition(")")[2].split()[0] != "S":
    pass
os.killpg(0, signal.SIGKILL)
os.write(writes, b"x")
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
_CALL = b"in flight  thread 0 MainThread: posix.killpg(0, 9): "


def _record(folder: Path) -> None:
    (folder / "program.py").write_text(_KILLS_ALL)
    assert replaydbg(folder, "record", "-q", "-o", "one", "program.py").status in (-9, 137)
    wait_until(lambda: read_group(folder / "one.rdbgs").is_complete)


def test_the_plan_has_the_calls_in_flight_of_each_process(tmp_path: Path) -> None:
    _record(tmp_path)

    planned = replaydbg(tmp_path, "resume", "one", "--plan").stdout
    repeated = replaydbg(tmp_path, "resume", "one", "-o", "two")
    skipped = replaydbg(tmp_path, "resume", "one", "--force", "--in-flight=skip", "-o", "three")

    assert planned.count(b"in flight  a call that is not in the log: known only after the replay") == 2, planned
    assert _CALL + b"repeat (nothing shows whether it was made; will be made)" in repeated.stderr, repeated
    assert repeated.status in (-9, 137)
    assert _CALL + b"skip (nothing shows whether it was made)" in skipped.stderr, skipped
    assert (skipped.status, skipped.stdout) == (0, b"5\n")


def test_a_call_that_is_in_the_log_is_listed_as_repeated(tmp_path: Path) -> None:
    _record(tmp_path)
    plan = json.loads(replaydbg(tmp_path, "resume", "one", "--plan", "--json").stdout)
    (event,) = (each["position"] for each in plan["processes"] if each["process"] == 1)

    resumed = replaydbg(tmp_path, "resume", "one", "--force", "--at-cut", f"1@{event - 1}", "-o", "two")

    assert b": repeat (made after the recovery line, and made again)" in resumed.stderr, resumed
