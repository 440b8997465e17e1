"""In a future nobody waits for real: where all threads wait, the clock jumps to the first deadline."""

import time
from pathlib import Path

import pytest

from tests.futures.made import Ground

pytestmark = pytest.mark.slow


def test_a_wait_takes_no_time(tmp_path: Path) -> None:
    text = """import threading, time
begun, wall = time.monotonic(), time.time()
done = threading.Event()
def late():
    time.sleep(3600)
    done.set()
if time.perf_counter() < 0:
    raise SystemExit(9)
threading.Thread(target=late, daemon=True).start()
found = done.wait(%s)
after = time.monotonic() - begun
print(found, round(after), round(time.time() - wall))
"""
    ground = Ground.make(tmp_path, text % "0.01")
    (tmp_path / "program.py").write_text(text % "0.01")
    began = time.monotonic()

    group = ground.one(ground.event("time.perf_counter"))

    assert (group["verdict"], group["last_line"]) == ("passed", "False 0 0")
    assert time.monotonic() - began < 60


def test_clocks_go_on_from_what_they_were(tmp_path: Path) -> None:
    text = """import datetime, threading, time
wall, steady = time.time(), time.monotonic()
time.process_time()
time.sleep(0.001)
threading.Thread(target=time.sleep, args=(7200,), daemon=True).start()
threading.Event().wait(0.001)
assert 0 < time.monotonic() - steady < 60, "monotonic"
assert 0 < time.time() - wall < 60, "wall"
assert abs(datetime.datetime.now().timestamp() - wall) < 60, "datetime"
assert abs(time.mktime(time.localtime()) - wall) < 60, "localtime"
"""
    ground = Ground.make(tmp_path, text)

    found = ground.futures(ground.event("time.process_time"), 8)

    assert (found["passed"], found["failed"], found["inconclusive"]) == (8, 0, 0), found["groups"]


def test_a_thread_that_looks_again_and_again_comes_to_an_end(tmp_path: Path) -> None:
    text = """import threading, time
flag = []
time.monotonic()
def late():
    time.sleep(0.001)
    flag.append(1)
thread = threading.Thread(target=late)
thread.start()
while not flag:
    pass
thread.join()
"""
    ground = Ground.make(tmp_path, text)

    found = ground.futures(ground.event("time.monotonic"), 6)

    assert (found["passed"], found["inconclusive"]) == (6, 0), found["groups"]


def test_a_deadlock_is_a_failure(tmp_path: Path) -> None:
    text = """import threading, time
one, other = threading.Lock(), threading.Lock()
def work(first, second):
    for _ in range(5):
        with first:
            with second:
                pass
time.monotonic()
threads = [threading.Thread(target=work, args=each) for each in ((one, other), (other, one))]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    ground = Ground.make(tmp_path, text)

    found = ground.futures(ground.event("time.monotonic"), 64, "-o", "kept")

    groups = {group["ending"]: group for group in found["groups"]}
    assert set(groups) == {"exit code 0", "deadlock: every thread waits"}
    deadlock = groups["deadlock: every thread waits"]
    assert deadlock["verdict"] == "failed" and deadlock["is_deadlock"] and deadlock["status"] == 5
    assert ground.replay(deadlock["recordings"][0]).status == 5


def test_waiting_for_what_nobody_sends_is_a_deadlock(tmp_path: Path) -> None:
    """The thread waits inside a call, which is not in the log."""
    text = """import os, signal, threading, time
r, w = os.pipe()
is_late = []
def answer():
    if not is_late: os.write(w, b"!")
def give_up(*_): raise SystemExit(1)
signal.signal(signal.SIGALRM, give_up)
signal.alarm(2)
time.monotonic()
thread = threading.Thread(target=answer)
thread.start()
is_late.append(1)
thread.join()
os.read(r, 1)
"""
    ground = Ground.passing(tmp_path, text)

    found = ground.futures(ground.event("time.monotonic"), 64, "-o", "kept")

    deadlock = next(group for group in found["groups"] if group["is_deadlock"])
    assert deadlock["status"] == 5 and found["inconclusive"] == 0
    assert ground.replay(deadlock["recordings"][0]).status == 5


def test_what_computes_for_ever_has_no_verdict(tmp_path: Path) -> None:
    text = """import signal, time
def stop(*_): raise SystemExit(0)
signal.signal(signal.SIGALRM, stop)
signal.alarm(1)
time.sleep(60)
while True:
    pass
"""
    ground = Ground.make(tmp_path, text)

    found = ground.futures(ground.event("time.sleep"), 1, "--timeout", "0.5")

    (group,) = found["groups"]
    assert (group["verdict"], group["ending"]) == ("inconclusive", "it still ran after 0.5 s")
