"""Nothing of a future reaches the outside, and one that needs something from there has no verdict."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.futures.made import TIMEOUT, Ground, environment
from tests.traced_futures.acts import acts_of_futures, strace

pytestmark = pytest.mark.slow

# What is done after the moment, and the beginning of what an inconclusive future needs.
OUTSIDE = {
    "make a device": ("os.mkfifo('new')", "needs posix.mkfifo('new')"),
    "write to a device": ("open('/dev/null', 'w')", "needs _io.FileIO.__init__('/dev/null', 'w')"),
    "start a program": ("os.system('touch new')", "needs posix.system('touch new')"),
    "fork": ("os._exit(0) if os.fork() == 0 else os.wait()", "needs posix.fork()"),
    "connect": ("socket.socket().connect(('127.0.0.1', 9))", "needs _socket.socket.connect("),
    "send a signal": ("os.kill(1, 0)", "needs posix.kill("),
    "read the standard input": ("sys.stdin.read()", "needs _io.FileIO."),
    "call the kernel": ("ctypes.CDLL(None).mkdir(b'new', 0o700)", "needs libc.mkdir("),
    "import": ("import other", "needs an import"),
}


def _after_a_minute(act: str) -> str:
    """Return a program that acts in a future alone: there time passes at once, where the recorded one was stopped."""
    return (
        "import ctypes, os, signal, socket, sys, threading, time\n"
        "def stop(*_): raise SystemExit(0)\n"
        "signal.signal(signal.SIGALRM, stop)\n"
        "signal.alarm(1)\n"
        "time.monotonic()\n"
        "time.sleep(60)\n"
        f"{act}\n"
    )


@pytest.mark.parametrize("what", OUTSIDE)
def test_a_future_that_needs_the_outside_has_no_verdict(what: str, tmp_path: Path) -> None:
    act, needs = OUTSIDE[what]
    (tmp_path / "other.py").write_text("")
    ground = Ground.make(tmp_path, _after_a_minute(act))
    before = sorted(path.name for path in tmp_path.iterdir())

    group = ground.one(ground.event("time.sleep"))

    assert group["verdict"] == "inconclusive" and group["recordings"] == []
    assert group["ending"].startswith(needs) and group["ending"].endswith("program.py:7"), group["ending"]
    assert sorted(path.name for path in tmp_path.iterdir()) == before


INSIDE = {
    "pipes": "r, w = os.pipe(); os.write(w, b'x'); assert os.read(r, 5) == b'x'; os.close(r)",
    "pairs of sockets": "a, b = socket.socketpair(); a.sendall(b'x'); assert b.recv(5) == b'x'; a.close()",
    "files in memory": "f = os.fdopen(os.memfd_create('m'), 'w+b'); f.write(b'x'); f.seek(0); assert f.read() == b'x'",
    "locks of multiprocessing": (
        "import multiprocessing; l = multiprocessing.RLock(); l.acquire(); l.acquire(); "
        "s = multiprocessing.BoundedSemaphore(1); assert s.acquire() and not s.acquire(False) "
        "and not s.acquire(timeout=3600); s.release(); "
        "threading.Thread(target=l.acquire, daemon=True).start(); time.sleep(1); l.release(); l.release()"
    ),
    "threads": "t = threading.Thread(target=print, args=('x',)); t.start(); t.join()",
    "random numbers": "assert len(os.urandom(9)) == 9 and 0 <= __import__('random').random() < 1",
    "what it has read before": "assert 'SIGALRM' in open('program.py').read() and os.path.exists('program.py')",
    "an exception": "\ntry: 1 / 0\nexcept ZeroDivisionError: __import__('traceback').print_exc()",
    "send a signal to itself": (
        "got = []; signal.signal(signal.SIGUSR1, lambda *a: got.append(a[0])); ME = os.getpid(); "
        "os.kill(ME, signal.SIGUSR1); os.kill(ME, 0); assert got == [signal.SIGUSR1]"
    ),
    "raise a signal": "signal.signal(signal.SIGUSR1, lambda *_: print('x')); signal.raise_signal(signal.SIGUSR1)",
}


@pytest.mark.parametrize("what", INSIDE)
def test_what_stays_inside_is_done(what: str, tmp_path: Path) -> None:
    head = "import multiprocessing.synchronize, random, traceback; open('program.py').read(); os.stat('program.py')\n"
    text = _after_a_minute(INSIDE[what] + "; print('done')")
    ground = Ground.make(tmp_path, text.replace("def stop", head + "def stop", 1))

    group = ground.futures(ground.event("time.sleep"), 1, "-o", "kept")["groups"][0]

    assert (group["verdict"], group["status"]) == ("passed", 0), group
    assert ground.replay(group["recordings"][0]).status == 0


_SIGNALLED_LOOP = """import asyncio, os, signal, time
ME = os.getpid()
async def main():
    loop, is_over = asyncio.get_running_loop(), asyncio.Event()
    {before}loop.add_signal_handler(signal.SIGTERM, is_over.set)
    time.monotonic_ns()
    {after}loop.add_signal_handler(signal.SIGTERM, is_over.set)
    loop.call_later(0.05, os.kill, ME, signal.SIGTERM)
    await asyncio.wait_for(is_over.wait(), 2)
    assert await asyncio.to_thread(lambda: 5) == 5
    loop.remove_signal_handler(signal.SIGTERM)
asyncio.run(main())
"""


def test_large_files_are_read(tmp_path: Path) -> None:
    """While recording, such files are copied beside the log, and a future has no directory."""
    text = "import time\nopen('big', 'wb').write(b'x' * (3 << 20))\ntime.monotonic()\n"
    ground = Ground.make(tmp_path, f"{text}print(len(open('big', 'rb').read()))\n")

    group = ground.futures(ground.event("time.monotonic"), 1, "-o", "kept")["groups"][0]

    assert (group["verdict"], group["last_line"]) == ("passed", str(3 << 20)), group
    assert ground.replay(group["recordings"][0]).stdout == b"%d\n" % (3 << 20)


@pytest.mark.parametrize("code", [0, 3])
def test_an_end_without_the_interpreters_own_is_one(code: int, tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, _after_a_minute(f"os._exit({code})"))

    group = ground.one(ground.event("time.sleep"))

    assert (group["verdict"], group["ending"]) == ("failed" if code else "passed", f"exit code {code}")


@pytest.mark.parametrize("skips", [{"before": "0 and ", "after": ""}, {"before": "", "after": "0 and "}])
def test_a_signal_wakes_an_event_loop(skips: dict[str, str], tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, _SIGNALLED_LOOP.format(**skips))

    found = ground.futures(ground.event("time.monotonic_ns"), 12, "--keep", "all", "-o", "kept")

    assert (found["passed"], found["failed"], found["inconclusive"]) == (12, 0, 0), found["groups"]
    assert {ground.replay(each).status for each in found["groups"][0]["recordings"]} == {0}


def test_a_thread_signals_the_process_of_the_future(tmp_path: Path) -> None:
    text = """import os, signal, threading, time
got = []
signal.signal(signal.SIGUSR1, lambda number, frame: got.append(number))
ME = os.getpid()
time.monotonic()
thread = threading.Thread(target=lambda: os.kill(ME, signal.SIGUSR1))
thread.start()
thread.join()
time.sleep(0.01)
assert got == [signal.SIGUSR1], got
"""
    ground = Ground.make(tmp_path, text)

    found = ground.futures(ground.event("time.monotonic"), 12, "--keep", "all", "-o", "kept")

    assert (found["passed"], found["failed"], found["inconclusive"]) == (12, 0, 0), found["groups"]
    assert {ground.replay(each).status for each in found["groups"][0]["recordings"]} == {0}


def test_a_signal_that_was_blocked_before_waits(tmp_path: Path) -> None:
    text = """import os, signal, time
got = []
signal.signal(signal.SIGUSR1, lambda number, frame: got.append(number))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
time.monotonic()
os.kill(os.getpid(), signal.SIGUSR1)
assert signal.sigpending() == {signal.SIGUSR1} and got == []
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
assert got == [signal.SIGUSR1]
"""
    ground = Ground.make(tmp_path, text)

    assert ground.one(ground.event("time.monotonic"))["verdict"] == "passed"


def test_pipes_of_the_past_are_each_futures_own(tmp_path: Path) -> None:
    text = """import os, socket, threading, time
r, w = os.pipe()
a, b = socket.socketpair()
os.write(w, b"under way")
a.sendall(b"sent")
time.monotonic()
got = []
def read():
    got.append(os.read(r, 100))
    os.write(w, b"more")
    b.sendall(b"back")
thread = threading.Thread(target=read)
thread.start()
thread.join()
assert (got, os.read(r, 100), b.recv(100), a.recv(100)) == ([b"under way"], b"more", b"sent", b"back"), got
"""
    ground = Ground.make(tmp_path, text)

    found = ground.futures(ground.event("time.monotonic"), 12, "--jobs", "4")

    assert (found["passed"], found["failed"], found["inconclusive"]) == (12, 0, 0), found["groups"]


def test_threads_that_wait_at_the_moment(tmp_path: Path) -> None:
    """Each makes its call again, and one of them in vain."""
    text = """import os, threading, time
r, w = os.pipe()
def read():
    assert os.read(r, 1) == b"x"
threads = [threading.Thread(target=read) for _ in range(3)]
for thread in threads: thread.start()
time.sleep(0.05)
time.monotonic()
for _ in threads:
    os.write(w, b"x")
    time.sleep(0.01)
for thread in threads: thread.join()
"""
    ground = Ground.make(tmp_path, text)

    found = ground.futures(ground.event("time.monotonic"), 6, "-o", "kept", "--keep", "all")

    assert (found["passed"], found["failed"], found["inconclusive"]) == (6, 0, 0), found["groups"]
    assert {ground.replay(name).status for group in found["groups"] for name in group["recordings"]} == {0}


def test_an_event_loop_of_the_past_goes_on(tmp_path: Path) -> None:
    text = """import asyncio, time
def work(number):
    return sum(range(number))
async def main():
    loop = asyncio.get_running_loop()
    first = await loop.run_in_executor(None, work, 10)
    time.perf_counter()
    await asyncio.sleep(3)
    rest = await asyncio.gather(*(loop.run_in_executor(None, work, each) for each in (20, 30)))
    assert (first, rest) == (45, [190, 435])
asyncio.run(main())
"""
    ground = Ground.make(tmp_path, text)

    found = ground.futures(ground.event("time.perf_counter"), 6, "-o", "kept", "--keep", "all")

    assert (found["passed"], found["failed"], found["inconclusive"]) == (6, 0, 0), found["groups"]
    assert {ground.replay(name).status for group in found["groups"] for name in group["recordings"]} == {0}


_WRITES = """import os, tempfile, threading, time
time.monotonic()
def work():
    with open("new", "w") as file: file.write("x")
    os.replace("new", "other"); os.chmod("other", 0o600); os.mkdir("made"); os.unlink("other"); os.rmdir("made")
    with tempfile.TemporaryDirectory() as name: open(os.path.join(name, "file"), "w").close()
thread = threading.Thread(target=work)
thread.start(); thread.join()
"""


_CONNECTS = """import socket, threading, time
before = socket.create_server(("127.0.0.1", 0))
early = socket.create_connection(before.getsockname())
time.monotonic()
def serve(listener):
    with listener, listener.accept()[0] as connection: connection.sendall(connection.recv(9))
later = socket.create_server(("127.0.0.1", 0))
address = later.getsockname()
threads = [threading.Thread(target=serve, args=(each,)) for each in (before, later)]
for thread in threads: thread.start()
for client in (early, socket.create_connection(address)):
    client.sendall(b"x")
    assert client.recv(9) == b"x"
for thread in threads: thread.join()
"""

_PROGRAMS = {
    "bank_transfer": (Path(__file__).parents[2] / "fixtures" / "futures" / "bank_transfer.py").read_text(),
    "writes": _WRITES,
    "connects": _CONNECTS,
}


@pytest.mark.parametrize("program", _PROGRAMS)
def test_the_kernel_sees_no_act_outside(program: str, tmp_path: Path) -> None:
    """strace of all processes of futures: nothing is opened to write, made, removed, connected or signalled."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    ground = Ground.make(tmp_path, _PROGRAMS[program])
    trace = tmp_path / "trace"
    words = ["futures", "one.rdbg", "--at", str(ground.first_thread()), "-n", "6", "-o", "kept"]

    subprocess.run(
        strace([sys.executable, "-m", "replaydbg", *words], trace),
        cwd=tmp_path,
        env=environment(tmp_path),
        timeout=TIMEOUT,
        capture_output=True,
        check=False,
    )

    replays, copies, acts = acts_of_futures(trace)
    assert replays == 1
    assert copies >= 6
    assert acts == []
