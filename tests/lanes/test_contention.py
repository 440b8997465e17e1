"""While recording, threads give way to each other when those of a plain run would: for a waiting thread that gets the
interpreter's lock during a call, or after the switch interval."""

import sys
from pathlib import Path

import pytest

from replaydbg.events.records import Control, ControlKind, SwitchReason
from replaydbg.log.reader import open_recording
from tests.harness import tool
from tests.harness.replays import passed_on, run

pytestmark = pytest.mark.slow

COMPUTE = """
import sys, threading
sys.setswitchinterval({interval})
def compute():
    for _ in range(20_000):
        sum((1, 2, 3))
        len(str(_))
threads = [threading.Thread(target=compute) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("computed")
"""

# The other thread is woken, and never asked to wait: it needs the lock that calls give up.
CALLS = """
import os, sys, threading, time
sys.setswitchinterval(1000)
woken, has_run = threading.Event(), []
def wait():
    woken.wait()
    has_run.append(True)
thread = threading.Thread(target=wait)
thread.start()
woken.set()
end = time.monotonic() + 60
while not has_run and time.monotonic() < end:
    os.stat("/")
print("has run" if has_run else "never ran")
thread.join()
"""

# Nobody is woken by another thread: what it waits for comes from outside.
OUTSIDE = """
import os, threading, time
has_run = []
readable, writable = os.pipe()
def sleep():
    time.sleep(0.001)
    has_run.append("slept")
def read():
    has_run.append(os.read(readable, 1))
def compute(number):
    end = time.monotonic() + 60
    while len(has_run) < number and time.monotonic() < end:
        sum((1, 2, 3))
for number, each in enumerate((sleep, read), 1):
    thread = threading.Thread(target=each)
    thread.start()
    os.write(writable, b"x")
    compute(number)
    thread.join()
print(has_run)
"""

FORK = """
import os, sys, threading, warnings
warnings.simplefilter("ignore")
go_on = threading.Event()
def wait(): go_on.wait()
def compute():
    while not go_on.is_set():
        sum((1, 2, 3))
threads = [threading.Thread(target=each) for each in (wait, compute)]
for thread in threads: thread.start()
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        child = threading.Thread(target=os.stat, args=("/",))
        child.start()
        child.join()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
go_on.set()
for thread in threads: thread.join()
print("forked")
"""

DAEMON = """
import threading
def compute():
    while True:
        sum((1, 2, 3))
for _ in range(3):
    threading.Thread(target=compute, daemon=True).start()
print("the end")
"""


def test_nobody_gives_way_before_the_switch_interval_has_passed(tmp_path: Path) -> None:
    assert _said_and_preemptions(tmp_path, COMPUTE.format(interval=1000)) == ("computed\n", 0)


def test_threads_that_compute_give_way_after_the_switch_interval(tmp_path: Path) -> None:
    # Long enough for the contender to get a processor on a busy machine.
    longer = COMPUTE.replace("20_000", "300_000")

    said, preemptions = _said_and_preemptions(tmp_path, longer.format(interval=1e-5))

    assert said == "computed\n"
    assert preemptions > 3


def test_calls_that_give_up_the_lock_let_a_woken_thread_run(tmp_path: Path) -> None:
    said, preemptions = _said_and_preemptions(tmp_path, CALLS)

    assert said == "has run\n"
    assert preemptions > 0


def test_what_comes_from_outside_interrupts_who_computes(tmp_path: Path) -> None:
    assert _said_and_preemptions(tmp_path, OUTSIDE)[0] == "['slept', b'x']\n"


def test_a_fork_leaves_the_child_without_a_contender(tmp_path: Path) -> None:
    assert _said_and_preemptions(tmp_path, FORK)[0] == "forked\n"


def test_daemons_compete_until_the_interpreter_ends(tmp_path: Path) -> None:
    for number in range(5):
        directory = tmp_path / str(number)
        directory.mkdir()
        assert _said_and_preemptions(directory, DAEMON)[0] == "the end\n"


def _said_and_preemptions(directory: Path, source: str) -> tuple[str, int]:
    """Records a program, and replays it equal; returns its output, and how often a thread was made to give way."""
    program, recording = directory / "program.py", directory / "run.rdbg"
    program.write_text(source)

    recorded = run(tool.record(sys.executable, recording, [str(program)]), cwd=directory, env=passed_on(), timeout=100)
    replayed = run(tool.replay(sys.executable, recording), cwd=directory, env=passed_on(), timeout=100)

    assert recorded.status == 0, recorded.stderr
    assert (replayed.stdout, replayed.status) == (recorded.stdout, 0), replayed.stderr
    with open_recording(recording) as opened:
        switches = [entry for entry in opened.events() if isinstance(entry, Control)]
    preempted = [each.kind is ControlKind.LANE and each.why is SwitchReason.PREEMPTED for each in switches]
    return recorded.stdout, sum(preempted)
