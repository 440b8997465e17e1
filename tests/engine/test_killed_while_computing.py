"""A replay always ends: that of a program that was killed while it computed, and one that computes endlessly."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from replaydbg.debugger.session import Session
from replaydbg.log.reader import open_recording
from replaydbg.replay.time_limits import AFTER_LEAST, BETWEEN_LEAST, cpu_limits
from tests.harness import tool
from tests.harness.build import Example, LogBuilder, end_json
from tests.harness.replays import Outcome, passed_on, run

pytestmark = pytest.mark.slow

# Killed by itself, with the default action of a signal, after a quarter of a second.
_HEAD = """import signal, sys
print("begun", flush=True)
signal.setitimer(signal.ITIMER_REAL, 0.25)
"""
_LOOPS = {
    "python": "k = 0\nwhile True:\n    k += 1\n",  # line 6
    "one line": "import itertools\nprint([k for k in itertools.count() if k < 0])\n",
    "calls": "def call(n):\n    return n + 1\nk = 0\nwhile True: k = call(k)\n",
    "C code": "import collections, itertools\ncollections.deque(itertools.count(), maxlen=0)\n",
    "one call": "print(3 ** (10 ** 9))\n",
    "threads": "import threading\ndef loop():\n    while True: pass\n"
    "for _ in range(3):\n    threading.Thread(target=loop).start()\n",
}


@pytest.mark.parametrize("loop", _LOOPS)
def test_a_program_killed_while_it_computes_replays_to_an_end(loop: str, tmp_path: Path) -> None:
    recorded = _record(tmp_path, _HEAD + _LOOPS[loop])
    replayed = _tool(tmp_path, "replay", "r.rdbg")

    assert recorded.status == 128 + signal.SIGALRM
    assert replayed.stdout == "begun\n"
    assert re.search(
        r"the recording ends here, after event \d+: signal 14 ended the program; the replay stops", replayed.stderr
    )


def test_a_session_over_it_opens_travels_and_ends_at_the_same_line_again(tmp_path: Path) -> None:
    _record(tmp_path, _HEAD + _LOOPS["python"])

    totals, values = [], []
    for _ in range(2):
        with Session(tmp_path / "r.rdbg") as session:
            assert "about the same amount of computation" in session.index.ended
            totals.append(session.index.total)
            values.append(str(session.ask.evaluate("k").value))
            session.seek(session.index.total // 2)
            values.append(str(session.ask.evaluate("k").value))
            session.seek(session.index.total)

    assert totals[0] == totals[1] > 1000
    assert values[:2] == values[2:]


def test_lines_of_it_are_counted(tmp_path: Path) -> None:
    _record(tmp_path, _HEAD + _LOOPS["python"])

    hits = _tool(tmp_path, "hits", "r.rdbg")

    assert re.search(r"^\d{5,}\t.*program\.py:6\t", hits.stdout, re.MULTILINE), hits


def test_nothing_is_known_of_the_end_where_the_recorder_was_killed_too(tmp_path: Path) -> None:
    program = _HEAD + "import os\nos.kill(os.getppid(), signal.SIGKILL)\nwhile True: pass\n"
    (tmp_path / "program.py").write_text(program)
    command = tool.record(sys.executable, tmp_path / "r.rdbg", ["program.py"])
    with subprocess.Popen(command, cwd=tmp_path, env=_env(), stdout=subprocess.PIPE, text=True) as recorder:
        assert recorder.stdout is not None
        assert recorder.stdout.read() == "begun\n", "to its end: the program has been killed"

    replayed = _tool(tmp_path, "replay", "r.rdbg-live")

    assert replayed.stdout == "begun\n"
    assert "the program and its recorder were killed, or are still running; the replay stops" in replayed.stderr


def test_the_recording_says_how_long_the_program_computed(tmp_path: Path) -> None:
    program = "import time\nbegin = time.process_time()\nwhile sum(range(1000)) and time.process_time() < 0: pass\n"
    _record(tmp_path, program + "for _ in range(8_000_000): pass\ntime.time()\nfor _ in range(8_000_000): pass\n")

    with open_recording(tmp_path / "r.rdbg") as recording:
        assert recording.end is not None
        whole, after, between = (recording.end.raw[name] for name in ("cpu_seconds", "cpu_after", "cpu_between"))

    assert 0.05 < between < whole
    assert 0.0 < after < whole
    assert after + between <= whole + 0.15


def test_a_replay_that_waits_for_what_never_comes_is_ended_with_the_place(tmp_path: Path) -> None:
    """A child writes into memory that the program reads in a loop, unseen by any gate."""
    _record(tmp_path, _SPINS)

    script = "import replaydbg.replay.time_limits as l; l.BETWEEN_LEAST = 0.5; l.BETWEEN_FACTOR = 1.0; "
    script += "from replaydbg.cli.main import main; raise SystemExit(main(['replay', 'r.rdbg']))"
    replayed = run([sys.executable, "-c", script], cwd=tmp_path, env=_env())

    assert replayed.status == tool.DIVERGED
    assert "much longer than the program ever did" in replayed.stderr
    assert 'program.py", line 5, in wait' in replayed.stderr


# The sleep lets the parent compute before the child writes: from outside, nothing shows that it does.
_SPINS = """import mmap, os, time
shared = mmap.mmap(-1, 100)
reading, writing = os.pipe()
def wait():
    while not shared[0]: pass
if os.fork() == 0:
    os.write(writing, b"x")
    time.sleep(0.05)
    shared[0] = 1
    os._exit(0)
os.read(reading, 1)
wait()
print("done")
"""


def test_a_recording_by_an_older_version_is_limited_by_the_time_of_the_whole_run(tmp_path: Path) -> None:
    end = end_json(status=-9, cpu_seconds=3.0, seconds=2.0)
    example = Example(end=end, log=LogBuilder().to_bytes())

    with open_recording(example.write(tmp_path)) as recording:
        limits = cpu_limits(recording, is_cut=False, by_lines=False)

    assert limits == (2 * 3.0 + AFTER_LEAST, 20 * 3.0 + BETWEEN_LEAST)


def _record(directory: Path, program: str) -> Outcome:
    (directory / "program.py").write_text(program)
    command = tool.record(sys.executable, directory / "r.rdbg", ["program.py"])
    return run(command, cwd=directory, env=_env())


def _tool(directory: Path, *args: str) -> Outcome:
    return run([sys.executable, "-m", "replaydbg", *args], cwd=directory, env=_env())


def _env() -> dict[str, str]:
    return {**passed_on(), "PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
