"""A Python that a group starts after it was resumed names what it inherits as the group's earlier recordings do."""

import json
from pathlib import Path

import pytest

from tests.recovery.killed_groups import record_killed, replaydbg

pytestmark = pytest.mark.slow

_PRINTS = """import os, subprocess, sys
begin, go = os.pipe()
if not os.fork():
    os.close(go)
    os.read(begin, 1)
    os._exit(0)
open("ready", "w").close()
sys.stdin.readline()
print("one", flush=True)
subprocess.run([sys.executable, "-c", "print('two')"])
print("three", flush=True)
os.close(go)
os.wait()
"""


def test_what_it_prints_is_replayed(tmp_path: Path) -> None:
    record_killed(tmp_path, _PRINTS)

    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert (resumed.status, resumed.stdout) == (0, b"one\ntwo\nthree\n"), resumed
    replayed = replaydbg(tmp_path, "replay", "two")
    assert (replayed.status, replayed.stdout) == (0, resumed.stdout), replayed


# The pipe is made after the fork: no other process has an end of it before the line.
_SENDS = """import os, subprocess, sys
begin, go = os.pipe()
if not os.fork():
    os.close(go)
    os.read(begin, 1)
    os._exit(0)
receives, sends = os.pipe()
os.write(sends, b"before")
os.read(receives, 6)
open("ready", "w").close()
sys.stdin.readline()
text = f"import os; os.write({sends}, b'after')"
subprocess.run([sys.executable, "-c", text], pass_fds=[sends])
print(os.read(receives, 9), flush=True)
os.close(go)
os.wait()
"""


def test_its_end_of_a_pipe_is_that_of_the_pipe(tmp_path: Path) -> None:
    record_killed(tmp_path, _SENDS)

    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert (resumed.status, resumed.stdout) == (0, b"b'after'\n"), resumed
    found = json.loads(replaydbg(tmp_path, "channels", "two", "--json").stdout)
    pipes = [(each["sent"], each["received"], each["from_outside"]) for each in found["channels"]]
    assert (11, 11, 0) in pipes, pipes
