"""What processes of one future have of each other: time, ends, signals, semaphores; and what they have not."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.futures.made import environment
from tests.group_futures.made_group import TIMEOUT, MadeGroup
from tests.harness.waiting import wait_until
from tests.traced_futures.acts import acts_of_futures, strace

pytestmark = pytest.mark.slow

START = """import os, sys, time
starts = []
def child(do):
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        os.close(write)
        for each in starts:
            os.close(each)
        os.read(read, 1)
        do()
        os._exit(0)
    os.close(read)
    starts.append(write)
    return pid
def go():
    time.sleep(0.1)
    for each in starts:
        os.write(each, b"x")
"""
"""Children that begin when `go()` is called."""


def test_time_is_one_for_all_and_nobody_waits_for_it(tmp_path: Path) -> None:
    text = f"""{START}
order = os.pipe()
def late():
    time.sleep(WAIT * 2)
    os.write(order[1], b"late,")
def early():
    time.sleep(WAIT)
    os.write(order[1], b"early,")
WAIT = 0.2
children = [child(late), child(early)]
WAIT = 3600
go()
before = time.monotonic()
for each in children:
    os.waitpid(each, 0)
assert os.read(order[0], 100) == b"early,late,"
assert time.monotonic() - before < 1 or time.monotonic() - before > 7199
"""
    made = MadeGroup.make(tmp_path, text.replace("WAIT = 3600\n", ""))
    began = time.monotonic()

    found = made.futures(20)

    assert (found["passed"], found["inconclusive"]) == (20, 0), found["groups"]
    assert time.monotonic() - began < 40


def test_processes_have_the_same_clocks(tmp_path: Path) -> None:
    text = f"""{START}
import pickle
one, other = os.pipe(), os.pipe()
def now():
    return time.monotonic(), time.time(), time.clock_gettime(time.CLOCK_BOOTTIME)
def echo():
    for _ in range(5):
        told = pickle.loads(os.read(one[0], 1000))
        here = now()
        assert all(a <= b < a + 5 for a, b in zip(told, here)), (told, here)
        time.sleep(0.01)
        os.write(other[1], pickle.dumps(now()))
now()
first = child(echo)
time.sleep(0.2)
now()
go()
for _ in range(5):
    os.write(one[1], pickle.dumps(now()))
    told = pickle.loads(os.read(other[0], 1000))
    here = now()
    assert all(a <= b < a + 5 for a, b in zip(told, here)), (told, here)
assert os.waitpid(first, 0)[1] == 0
"""
    made = MadeGroup.make(tmp_path, text)
    late = made.futures(1)["cut"]["1"] + 3

    for words in ((), ("--at", f"1@{late}")):
        found = made.futures(15, *words)
        assert (found["passed"], found["inconclusive"]) == (15, 0), found["groups"]


NEVER_FAIL = {
    "more than a pipe takes": """import os
r, w = os.pipe()
if os.fork() == 0:
    os.close(r)
    os.write(w, b"x" * 200_000)
    os._exit(0)
os.close(w)
size = 0
while data := os.read(r, 65536):
    size += len(data)
assert size == 200_000, size
os.wait()
""",
    "more than a pair of sockets takes": """import os, socket
one, other = socket.socketpair()
if os.fork() == 0:
    one.close()
    other.sendall(bytes(2_000_000))
    os._exit(0)
other.close()
size = 0
while data := one.recv(65536):
    size += len(data)
assert size == 2_000_000, size
os.wait()
""",
    "the last act before all threads wait": """import multiprocessing
def add(number):
    return number + 1
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for number in range(8):
            assert pool.apply_async(add, (number,)).get(timeout=30) == number + 1
""",
    "a signal to a process with threads": """import os, signal, threading, time
r, w = os.pipe()
if (child := os.fork()) == 0:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    lock = threading.Lock()
    lock.acquire()
    threading.Thread(target=lock.acquire, daemon=True).start()
    os.write(w, b"r")
    time.sleep(100)
    os._exit(1)
os.read(r, 1)
time.sleep(0.2)
os.kill(child, signal.SIGTERM)
assert os.waitpid(child, 0)[1] == 0
""",
    "a handler from before the fork": """import os, signal, time
r, w = os.pipe()
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
if (child := os.fork()) == 0:
    os.write(w, b"r")
    time.sleep(100)
    os._exit(1)
os.read(r, 1)
os.kill(child, signal.SIGTERM)
assert os.waitpid(child, 0)[1] == 0
""",
    "a wait that is under way": """import os, socket, time
listener = socket.create_server(("127.0.0.1", 0))
listener.settimeout(0.2)
port = listener.getsockname()[1]
if os.fork() == 0:
    listener.close()
    time.sleep(0.5)
    socket.create_connection(("127.0.0.1", port)).recv(1)
    os._exit(0)
late = 0
while True:
    try:
        connection, _ = listener.accept()
        break
    except TimeoutError:
        late += 1
connection.send(b"x")
os.wait()
assert late == 2, late
""",
    "semaphores of started processes": """import multiprocessing
def work(queue, answers):
    answers.put(queue.get() + 1)
if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    queue, answers = spawn.Queue(), spawn.Queue()
    processes = [spawn.Process(target=work, args=(queue, answers)) for _ in range(2)]
    for each in processes:
        each.start()
    for number in (1, 2):
        queue.put(number)
    assert sorted(answers.get() for _ in processes) == [2, 3]
    for each in processes:
        each.join()
        assert each.exitcode == 0
""",
}


@pytest.mark.parametrize("what", NEVER_FAIL)
def test_a_program_that_never_fails_has_no_future_that_does(what: str, tmp_path: Path) -> None:
    made = MadeGroup.make(tmp_path, NEVER_FAIL[what])

    found = made.futures(30)

    assert (found["passed"], found["failed"], found["inconclusive"]) == (30, 0, 0), found["groups"]


def test_children_are_waited_for_as_they_end(tmp_path: Path) -> None:
    text = f"""{START}
def ends(code):
    return lambda: os._exit(code)
first, second = child(ends(7)), child(ends(0))
try:
    assert os.waitpid(first, os.WNOHANG) == (0, 0)
    go()
    ended = [os.wait(), os.wait()]
    assert sorted(ended) == sorted([(first, 7 << 8), (second, 0)]), ended
    try:
        os.wait()
    except ChildProcessError:
        print("none is left")
finally:
    sys.stdout.flush()
os._exit(9 if ended[0][0] == second else 8)
"""
    made = MadeGroup.make(tmp_path, text, status=8)

    groups = made.futures(40)["groups"]

    assert {group["status"] for group in groups} == {7}  # it is the first one that failed
    assert {group["last_line"] for group in groups} <= {"", "none is left"}


def test_a_process_ends_by_the_signal_of_another_one(tmp_path: Path) -> None:
    text = f"""{START}
import signal
quiet = child(lambda: time.sleep(3600))
def handles():
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    time.sleep(3600)
noisy = child(handles)
go()
time.sleep(0.2)
for each in (quiet, noisy):
    os.kill(each, signal.SIGTERM)
statuses = [os.waitstatus_to_exitcode(os.waitpid(each, 0)[1]) for each in (quiet, noisy)]
assert statuses == [-15, 0], statuses
try:
    os.kill(quiet, 0)
except ProcessLookupError:
    print("gone")
"""
    made = MadeGroup.make(tmp_path, text)

    group = made.one("-o", "kept")

    assert (group["verdict"], group["last_line"]) == ("passed", "gone"), group
    (kept,) = made.kept()
    assert made.replays(kept)


def test_the_end_of_a_child_is_signalled(tmp_path: Path) -> None:
    text = f"""{START}
import signal
heard = []
signal.signal(signal.SIGCHLD, lambda *_: heard.append(1))
first = child(lambda: None)
go()
while not heard:
    time.sleep(0.1)
assert os.waitpid(first, os.WNOHANG) == (first, 0)
"""
    made = MadeGroup.make(tmp_path, text)

    found = made.futures(10)

    assert (found["passed"], found["inconclusive"]) == (10, 0), found["groups"]


SEMAPHORES = """import multiprocessing, os, time
def work(lock, slots, log, name):
    with slots:
        with lock:
            with lock:
                log.send(name)
def main():
    fork = multiprocessing.get_context("fork")
    lock, slots, (here, there) = fork.RLock(), fork.BoundedSemaphore(2), fork.Pipe(False)
    slots.acquire()
    with lock:
        processes = [fork.Process(target=work, args=(lock, slots, there, name)) for name in "ab"]
        for each in processes:
            each.start()
        time.sleep(0.1)
        assert not slots.acquire(timeout=0.05) or True
    names = [here.recv() for _ in processes]
    for each in processes:
        each.join()
    for _ in range(1):
        slots.release()
    assert sorted(names) == ["a", "b"]
    own = fork.Lock()
    assert own.acquire(False) and not own.acquire(False)
    print("".join(names))
main()
"""


def test_semaphores_have_the_values_that_they_had(tmp_path: Path) -> None:
    text = SEMAPHORES.replace("        assert not slots.acquire(timeout=0.05) or True\n", "")
    made = MadeGroup.make(tmp_path, text)

    groups = made.futures(40, "-o", "kept")["groups"]

    assert {group["verdict"] for group in groups} == {"passed"}, groups
    assert {group["last_line"] for group in groups} <= {"ab", "ba"}
    assert all(made.replays(each) for each in made.kept())


def test_a_wait_for_a_semaphore_ends_with_its_time(tmp_path: Path) -> None:
    text = """import multiprocessing, time
def hold(lock, connection):
    with lock:
        connection.send(1)
        connection.recv()
def main():
    fork = multiprocessing.get_context("fork")
    lock, (here, there) = fork.Lock(), fork.Pipe()
    process = fork.Process(target=hold, args=(lock, there))
    process.start()
    here.recv()
    before = time.monotonic()
    assert not lock.acquire(timeout=0.5)
    assert 0.49 < time.monotonic() - before < 5
    here.send(1)
    assert lock.acquire(timeout=60)
    process.join()
main()
"""
    made = MadeGroup.make(tmp_path, text)

    found = made.futures(10)

    assert (found["passed"], found["inconclusive"]) == (10, 0), found["groups"]


OUTSIDE = {
    "memory": (
        f"""{START}
import mmap
memory = mmap.mmap(-1, 4096)
def add():
    memory[0] += 1
children = [child(add), child(add)]
go()
for each in children:
    os.waitpid(each, 0)
""",
        "memory that it shares with other processes",
    ),
    "file that several change": (
        f"""{START}
def add():
    with open("count") as file:
        count = int(file.read())
    with open("count", "w") as file:
        file.write(str(count + 1))
with open("count", "w") as file:
    file.write("0")
children = [child(add), child(add)]
go()
for each in children:
    os.waitpid(each, 0)
""",
        "_io.FileIO.__init__('count', 'r')",
    ),
    "file that another one makes": (
        f"""{START}
def make():
    with open("made", "w") as file:
        file.write("x")
first = child(make)
go()
os.waitpid(first, 0)
print(os.path.exists("made"))
""",
        "a file that another process of the group has changed",
    ),
    "new program": (
        f"""{START}
first = child(lambda: None)
go()
os.waitpid(first, 0)
os.system("true")
""",
        "posix.system('true')",
    ),
    "stopped process": (
        f"""{START}
first = child(lambda: time.sleep(1))
go()
os.kill(first, 19)
os.kill(first, 18)
os.waitpid(first, 0)
""",
        "to stop another process",
    ),
    "unix socket": (
        f"""{START}
import socket
listener = socket.socket(socket.AF_UNIX)
listener.bind("here")
listener.listen()
def connect():
    listener.close()
    with socket.socket(socket.AF_UNIX) as made:
        made.connect("here")
first = child(connect)
go()
listener.accept()
os.waitpid(first, 0)
os.unlink("here")
""",
        "_socket.socket",
    ),
}


@pytest.mark.parametrize("what", OUTSIDE)
def test_what_processes_cannot_have_in_common_has_no_verdict(what: str, tmp_path: Path) -> None:
    text, needs = OUTSIDE[what]
    made = MadeGroup.make(tmp_path, text)

    group = made.one()

    assert group["verdict"] == "inconclusive", group
    assert needs in group["ending"]
    assert re.match(r"process \d: needs ", group["ending"])


def test_a_file_that_only_one_process_changes_is_its_own(tmp_path: Path) -> None:
    text = f"""{START}
def write(name):
    def do():
        with open(name, "w") as file:
            file.write(name)
        with open(name) as file:
            assert file.read() == name
    return do
children = [child(write(each)) for each in ("a", "b")]
go()
for each in children:
    assert os.waitpid(each, 0)[1] == 0
"""
    made = MadeGroup.make(tmp_path, text)
    for name in ("a", "b"):
        (tmp_path / name).unlink()

    found = made.futures(10)

    assert (found["passed"], found["inconclusive"]) == (10, 0), found["groups"]
    assert not (tmp_path / "a").exists()


def test_the_kernel_sees_no_act_outside(tmp_path: Path) -> None:
    """strace of all processes of futures: nothing is opened to write, made, removed, connected or signalled."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    MadeGroup.of_fixture(tmp_path, "account_over_tcp")
    trace = tmp_path / "trace"

    command = [sys.executable, "-m", "replaydbg", "futures", "one.rdbgs", "-n", "4"]
    subprocess.run(
        strace(command, trace),
        cwd=tmp_path,
        env=environment(tmp_path),
        timeout=TIMEOUT,
        capture_output=True,
        check=False,
    )

    replays, copies, acts = acts_of_futures(trace)
    assert replays >= 3
    assert copies == 12
    assert acts == []


def test_processes_end_with_the_command(tmp_path: Path) -> None:
    text = f"""{START}
def spin():
    while True:
        pass
first = child(spin)
go()
os.kill(first, 9)
os.waitpid(first, 0)
"""
    made = MadeGroup.make(tmp_path, text)
    command = [sys.executable, "-m", "replaydbg", "futures", "one.rdbgs", "-n", "2", "--timeout", "60"]
    process = subprocess.Popen(
        command, cwd=made.folder, env=environment(tmp_path), stdout=subprocess.DEVNULL, start_new_session=True
    )

    def of_session() -> list[int]:
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if os.getsid(int(path.name)) == process.pid and int(path.name) != process.pid:
                    found.append(int(path.name))
            except OSError:
                continue
        return found

    try:
        wait_until(lambda: len(of_session()) >= 4)
        process.send_signal(signal.SIGKILL)
        process.wait(TIMEOUT)
        wait_until(lambda: not of_session())
    finally:
        process.kill()
        process.wait()


MANY_WAIT = """import os, socket, time
listener = socket.create_server(("127.0.0.1", 0), backlog=128)
read, write = os.pipe()
begin, go = os.pipe()
if os.fork() == 0:
    address = listener.getsockname()
    CLOSE
    ends = [socket.create_connection(address) for _ in range(70)]
    for number, each in enumerate(ends):
        each.sendall(b"%d\\n" % number)
    os.write(write, b"x")
    os.read(begin, 1)
    os._exit(0)
os.read(read, 1)
time.sleep(0.1)
answers = []
for _ in range(70):
    connection, _ = listener.accept()
    answers.append(int(connection.makefile().readline()))
    connection.close()
os.write(go, b"x")
os.wait()
assert sorted(answers) == list(range(70))
"""
"""Connections wait at the sleep, for a socket whose port nobody but the child has asked for."""


def test_many_connections_can_wait_to_be_accepted(tmp_path: Path) -> None:
    made = MadeGroup.make(tmp_path, MANY_WAIT.replace("CLOSE", "listener.close()"))

    group = made.one("--at", f"1@{made.event_of('time.sleep')}")

    assert (group["verdict"], group["ending"]) == ("passed", "exit code 0")


def test_connections_that_several_can_accept_are_refused(tmp_path: Path) -> None:
    made = MadeGroup.make(tmp_path, MANY_WAIT.replace("CLOSE", "pass"))

    finished = made.replaydbg("futures", "one.rdbgs", "-n", "1", "--at", f"1@{made.event_of('time.sleep')}")

    assert finished.status == 2
    assert b"processes 1 and 2 can both accept a connection that waits there." in finished.stderr
