"""A recording of a process that was killed by SIGKILL opens, and replays everything up to the last completed crossing.

A write is real before its event is committed. So a kill between the two leaves one line more in the output than the
replay can know, and never more than that.
"""

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.harness import tool
from tests.harness.replays import TIMEOUT, Outcome, passed_on, run
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.slow

KILLS = 100
# Number of tests over which they are spread, for pytest-xdist.
_SHARES = 10
# Exit codes that indicate a fault: damaged, usage, divergence.
_WRONG = (1, 2, tool.DIVERGED)

_COUNTER = """import os, sys, time, random
print("pid", os.getpid(), flush=True)
n = 0
while True:
    n += 1
    os.stat("/")
    sys.stdout.write(f"{n} {time.time()} {os.urandom(3).hex()} {random.random()}\\n")
    sys.stdout.flush()
"""


@dataclass(frozen=True, slots=True)
class _Killed:
    """The results of a run that was killed."""

    # The sealed file, the live directory if the launcher died too, or None if neither was begun.
    recording: Path | None
    # The output that arrived.
    output: str


@pytest.mark.parametrize("victim", ["program", "both"])
@pytest.mark.parametrize("share", range(_SHARES // 2))
def test_a_killed_run_replays_to_its_last_crossing(victim: str, share: int, tmp_path: Path) -> None:
    for number in range(KILLS // _SHARES):
        seed = f"{victim}-{share}-{number}"
        folder = tmp_path / seed
        folder.mkdir()

        killed = _record_and_kill(folder, victim, after=random.Random(seed).uniform(0, 0.15))
        assert killed.recording is not None, f"{seed}: no recording in {list(folder.iterdir())}"
        replayed = _replay(killed.recording)

        _assert_is_beginning(killed.output, replayed, f"{seed}, recording {killed.recording}")
        if victim == "program":
            assert replayed.status == tool.ENDS_EARLY, f"{seed}: {replayed.stderr}"


@pytest.mark.parametrize("share", range(2))
def test_a_kill_during_the_start_leaves_something_that_opens_or_nothing(share: int, tmp_path: Path) -> None:
    """The launcher and the program die before the first line is printed."""
    for number in range(10):
        seed = f"early-{share}-{number}"
        folder = tmp_path / seed
        folder.mkdir()

        killed = _record_and_kill(folder, "start", after=random.Random(seed).uniform(0, 0.25))
        if killed.recording is None:
            continue
        replayed = _replay(killed.recording)

        assert "Traceback" not in replayed.stderr, f"{seed}: {replayed.stderr}"
        assert killed.output.startswith(replayed.stdout), seed


def _assert_is_beginning(output: str, replayed: Outcome, what: str) -> None:
    assert "Traceback" not in replayed.stderr, f"{what}: {replayed.stderr}"
    assert replayed.status not in _WRONG, f"{what}: {replayed.status}: {replayed.stderr}"
    assert output.startswith(replayed.stdout), f"{what}: not a beginning: {replayed.stdout[-200:]!r}"
    missing = output[len(replayed.stdout) :]
    assert missing.count("\n") <= 1, f"{what}: missing {missing[:300]!r}"


def _record_and_kill(folder: Path, victim: str, *, after: float) -> _Killed:
    """Record the counter and kill `after` seconds after its first line, or after the launcher's start ("start")."""
    recording, program, output = folder / "r.rdbg", folder / "counter.py", folder / "output"
    program.write_text(_COUNTER)
    with output.open("wb") as out:
        launcher = subprocess.Popen(
            tool.record(sys.executable, recording, [str(program)]), stdout=out, env=_env(), start_new_session=True
        )
    try:
        pid = 0 if victim == "start" else _pid_from(output)
        time.sleep(after)  # any moment is wanted, not one that a condition describes
        if victim == "program":
            os.kill(pid, signal.SIGKILL)
            launcher.wait(TIMEOUT)
    finally:
        _end_session(launcher)
    live = recording.with_name(recording.name + "-live")
    found = next((path for path in (recording, live) if path.exists()), None)
    program.unlink()
    return _Killed(found, output.read_text())


def _pid_from(output: Path) -> int:
    """Wait for the first line of the program, which contains its process id."""
    wait_until(lambda: "\n" in output.read_text(), TIMEOUT, message=lambda: "the recorded program printed nothing")
    return int(output.read_text().partition("\n")[0].removeprefix("pid "))


def _end_session(launcher: "subprocess.Popen[bytes]") -> None:
    """Kill the launcher and the program at once; both are in the launcher's process group."""
    try:
        os.killpg(launcher.pid, signal.SIGKILL)
    except ProcessLookupError:
        # Both have ended: the launcher was waited for.
        assert launcher.returncode is not None
    launcher.wait(TIMEOUT)


def _replay(recording: Path) -> Outcome:
    return run(tool.replay(sys.executable, recording), cwd=recording.parent, env=_env())


def _env() -> dict[str, str]:
    return {**passed_on(), "PATH": os.environ.get("PATH", os.defpath)}
