"""Semaphores of multiprocessing are made again if no other process can have changed their values."""

from pathlib import Path

import pytest

from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from tests.resume.going_on import KILLED, assert_goes_on, record_in, resume_in

pytestmark = pytest.mark.slow

_PROGRAM = """
import multiprocessing, os, threading

multiprocessing.set_start_method("fork")  # with the others, which 3.14 prefers, semaphores keep their names
free, held = multiprocessing.Lock(), multiprocessing.Lock()
three, owned = multiprocessing.Semaphore(3), multiprocessing.RLock()
multiprocessing.Lock()  # dropped
with free:
    held.acquire()
three.acquire()
os.stat(".")
owned.acquire()
owned.acquire()
os.stat(".")
print(free.acquire(False), held.acquire(False), three.get_value(), flush=True)
held.release()
print(held.acquire(timeout=5), flush=True)
owned.release()
owned.release()
thread = threading.Thread(target=lambda: print(owned.acquire(timeout=5), flush=True))
thread.start()
thread.join()
queue = multiprocessing.SimpleQueue()
queue.put("put")
print(queue.get())
"""

_SHARED = """
import multiprocessing, os

multiprocessing.set_start_method("fork")
lock = {make}
{then}
os.utime(".")
"""


def test_they_have_the_values_that_they_had(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_PROGRAM)
    assert_goes_on(tmp_path, points=10)


@pytest.mark.parametrize(
    ("make", "then", "reason"),
    [
        (
            "multiprocessing.Lock()",
            "child = multiprocessing.Process(target=lock.acquire); child.start(); child.join()",
            b"which was forked, can have changed its value",
        ),
        (
            "multiprocessing.get_context('spawn').Lock()",
            "",
            b"it has a name, by which other processes can change its value",
        ),
    ],
    ids=["forked", "named"],
)
def test_those_that_others_can_have_changed_are_refused(make: str, then: str, reason: bytes, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_SHARED.format(make=make, then=then))
    record_in(tmp_path, "whole")
    with open_recording(tmp_path / "whole.rdbg") as recording:
        (touched,) = [each.number for each in recording.events(gate="posix.utime") if isinstance(each, Event)]
    assert record_in(tmp_path, "killed", killed_at=touched - 1).status in KILLED

    refused = resume_in(tmp_path, "killed")

    assert refused.status == 2
    assert reason in refused.stderr, refused
