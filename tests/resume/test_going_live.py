"""A program that is killed after any event goes on as it would have: one program for each behaviour."""

import sys
from pathlib import Path

import pytest

from tests.resume.going_on import KILLED, assert_goes_on, record_in, run_in

pytestmark = pytest.mark.slow

_POINTS = 3
"""At how many events a program is killed, evenly over its own part of the run."""

_PROGRAMS = {
    "modules that are imported afterwards are found": """
import os
os.getpid()
import decimal, csv, statistics
print(decimal.Decimal("1.5") + 1, csv.__name__, statistics.mean([1, 3]))
""",
    "each socket waits, or does not, as it did": """
import os, socket
listener = socket.create_server(("127.0.0.1", 0))
listener.getsockname()
other = socket.socket()
other.setblocking(False)
for _ in range(6):
    os.stat(".")
print(os.get_blocking(listener.fileno()), os.get_blocking(other.fileno()))
""",
    "what is closed afterwards is closed": """
import os, socket
listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
for _ in range(6):
    os.stat(".")
listener.close()
try:
    socket.create_connection(("127.0.0.1", port), timeout=5)
except ConnectionRefusedError:
    print("refused")
""",
    "what is in a pipe stays in it": """
import os
reader, writer = os.pipe()
for number in range(5):
    os.write(writer, b"%d" % number)
os.close(writer)
print(os.read(reader, 100), os.read(reader, 1))
""",
    "what was sent in pieces, and received into a part of a buffer, counts": """
import os, socket
one, other = socket.socketpair()
one.sendmsg([b"ab", b"cd", b"ef"])
reader, writer = os.pipe()
os.writev(writer, [b"12", b"34"])
buffer = bytearray(8)
print(other.recv_into(buffer, 2), bytes(buffer[:2]), other.recv(1, socket.MSG_PEEK))
print(os.read(reader, 3))
print(other.recv(100), os.read(reader, 100))
""",
    "a timer that is about to end has its handler": """
import os, signal, time
signal.signal(signal.SIGALRM, lambda number, frame: print("alarm"))
signal.setitimer(signal.ITIMER_REAL, 0.001)
for _ in range(3):
    os.getpid()
time.sleep(0.1)  # not as long as the timer runs: each question would be an event, and their number is that of the kill
""",
    "a wait that was computed by the replay's clock ends": """
import os, queue, threading
waiting, seen = queue.Queue(), [os.getpid() > 0]
def wait():
    for _ in range(4):
        try:
            waiting.get(timeout=0.02)
        except queue.Empty:
            seen.append("empty")
thread = threading.Thread(target=wait)
thread.start()
thread.join()
print(seen)
""",
    "a collection that calls the program goes on": """
import gc, os
gc.disable()
class Node:
    def __init__(self):
        self.me = self
    def __del__(self):
        os.stat(".")
for _ in range(6):
    Node()
print(gc.collect() >= 6)
""",
    "a signal that the program does not handle ends it": """
import os, signal
for _ in range(6):
    os.stat(".")
os.kill(os.getpid(), signal.SIGTERM)
print("not reached")
""",
}


@pytest.mark.parametrize("behaviour", list(_PROGRAMS))
def test_it_goes_on_from_any_event(tmp_path: Path, behaviour: str) -> None:
    (tmp_path / "program.py").write_text(_PROGRAMS[behaviour])

    assert_goes_on(tmp_path, _POINTS)


def test_the_size_limit_holds_for_what_is_added(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import os\nfor _ in range(60000):\n    os.getpid()\nprint('done')\n")
    assert record_in(tmp_path, "old", killed_at=500).status in KILLED
    words = ["env", "REPLAYDBG_MAX_SIZE=200000", sys.executable, "-m", "replaydbg", "resume", "-o", "new.rdbg"]

    resumed = run_in(tmp_path, [*words, "old.rdbg"])

    assert resumed.stdout == b"done\n"
    assert b"reached its size limit" in resumed.stderr


_MAKES_NAMES = """
import os
lock = f"lock-{os.getpid()}"
os.mkdir(lock)
for call in (lambda: os.mkdir(lock), lambda: os.unlink("never"), lambda: os.symlink(lock, lock)):
    os.stat(".")
    try:
        call()
    except OSError as error:
        print(error.strerror)
"""


def test_what_was_there_before_is_not_taken_for_the_work_of_the_call_in_flight(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_MAKES_NAMES)

    assert_goes_on(tmp_path, 20)
