"""The processes of a resumed group go on in the standard input that they were reading together."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.surroundings import without_steering
from tests.harness.waiting import wait_until
from tests.resumes.group_rounds import kill_group

pytestmark = pytest.mark.slow

_LINES = "".join(f"{number:06}\n" for number in range(1000))
# None of them may notice that another one is killed: the group would go back to the moment before that one was started.
_WAITS = """
open("ready", "w").close()
wait_for("go")
"""
_BEGINS = """import os, subprocess, sys, time
def read():
    return os.read(0, 7)
def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.01)
"""


def resumed_group(folder: Path, text: str) -> tuple[str, str]:
    """Record a program whose standard input is a file, kill it with its processes, and resume it; return its output,
    and what the command printed.
    """
    (folder / "program.py").write_text(_BEGINS + text)
    (folder / "lines").write_text(_LINES)
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(folder / "store")}
    command = [sys.executable, "-m", "replaydbg", "record", "-q", "-o", "one", "program.py"]
    with (folder / "lines").open() as lines:
        recorder = subprocess.Popen(command, cwd=folder, env=env, stdin=lines, start_new_session=True)
    wait_until(lambda: (folder / "ready").exists() or recorder.poll() is not None)
    kill_group(folder / "one.rdbgs")
    recorder.communicate(timeout=60)
    (folder / "go").touch()
    command = [sys.executable, "-m", "replaydbg", "resume", "-o", "two", "one.rdbgs"]
    with (folder / "lines").open() as lines:
        resumed = subprocess.run(command, cwd=folder, env=env, stdin=lines, capture_output=True, timeout=60)
    assert resumed.returncode == 0, resumed.stderr.decode()
    return resumed.stdout.decode(), resumed.stderr.decode()


def test_one_process_reads_it(tmp_path: Path) -> None:
    text = f"if not os.fork():\n    os._exit(0)\nos.wait(), read(), read(){_WAITS}print(read())\n"
    printed, said = resumed_group(tmp_path, text)

    assert printed == "b'000002\\n'\n", said
    assert "standard input: continues at byte 14\n" in said


def test_a_forked_child_reads_on(tmp_path: Path) -> None:
    text = f"""read()
if not os.fork():
    read(), read(), open("half", "w").close(), wait_for("go")
    print(read(), flush=True)
    os._exit(0)
wait_for("half"){_WAITS}os.wait()
print(read())
"""
    printed, said = resumed_group(tmp_path, text)

    assert printed == "b'000003\\n'\nb'000004\\n'\n", said
    assert said.count("standard input: continues at byte 21\n") == 2


def test_what_an_ended_child_read_counts(tmp_path: Path) -> None:
    text = f"subprocess.run([sys.executable, '-c', 'import os; os.read(0, 14)']){_WAITS}print(read())\n"
    printed, said = resumed_group(tmp_path, text)

    assert printed == "b'000002\\n'\n", said


def test_nothing_is_skipped_if_the_order_of_reads_is_not_known(tmp_path: Path) -> None:
    text = f"""reads, writes = os.pipe()
if not os.fork():
    read()
    os.write(writes, b"x")
    time.sleep(0.01)
    os.close(writes)
    os._exit(0)
os.close(writes)
os.read(reads, 1), read(), os.wait(){_WAITS}print(read())
"""
    printed, said = resumed_group(tmp_path, text)

    assert "standard input: the program had read 7 bytes from its own, and other processes as well; none" in said
    assert printed == "b'000000\\n'\n"
