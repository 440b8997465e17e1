"""A child is an ordinary process outside the recording: it outlives its parent, and its own behaviour is unchanged."""

import os
import sys
from pathlib import Path

import pytest

from tests.harness import tool
from tests.harness.replays import Outcome, passed_on, run
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.slow

# The child waits until the recording has been sealed, then does what crosses gates, and ends like any program. Its
# sleep takes its time, although a signal interrupts it.
_OUTLIVING = """import atexit, os, random, signal, sys, threading, time
reading, writing = os.pipe()
if os.fork() == 0:
    os.write(writing, b"x")
    os.close(1)
    os.close(2)
    while not os.path.exists("sealed"):
        time.sleep(0.01)
    started = time.monotonic()
    thread = threading.Thread(target=lambda: [os.stat("/") for _ in range(1000)])
    thread.start()
    thread.join()
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    time.sleep(0.05)
    atexit.register(lambda: os.replace("report", "done"))
    with open("report", "w") as report:
        report.write(f"{time.monotonic() - started >= 0.05} {random.random() < 1}")
    sys.exit(3)
os.read(reading, 1)
print("the parent ends", flush=True)
"""
_KILLED = _OUTLIVING + "os.kill(os.getpid(), signal.SIGKILL)\n"
_EXITED = _OUTLIVING + "os._exit(5)\n"


@pytest.mark.parametrize(
    ("program", "status"), [(_OUTLIVING, 0), (_KILLED, 137), (_EXITED, 5)], ids=["ends", "killed", "exits"]
)
def test_a_child_outlives_its_parent(program: str, status: int, tmp_path: Path) -> None:
    recording = tmp_path / "r.rdbg"
    (tmp_path / "program.py").write_text(program)

    recorded = _run(tmp_path, tool.record(sys.executable, recording, ["program.py"]))
    sealed = recording.read_bytes()
    (tmp_path / "sealed").touch()
    report = _wait_for(tmp_path / "done")

    assert (recorded.status, recorded.stdout) == (status, "the parent ends\n"), recorded.stderr
    assert report == "True True"
    assert recording.read_bytes() == sealed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["done", "program.py", "r.rdbg", "sealed"]
    (tmp_path / "done").unlink()
    replayed = _run(tmp_path, tool.replay(sys.executable, recording))
    assert (replayed.status, replayed.stdout) == (status, "the parent ends\n"), replayed.stderr
    assert not (tmp_path / "done").exists()


def _run(directory: Path, command: list[str]) -> Outcome:
    env = {**passed_on(), "PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
    return run(command, cwd=directory, env=env)


def _wait_for(path: Path) -> str:
    """Wait until another process has written the file; return its content."""
    wait_until(path.exists, message=lambda: f"{path} was not written")
    return path.read_text()
