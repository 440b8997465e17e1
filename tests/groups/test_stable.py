"""Deadlocks are found, with the lines that wait and for whom, and nothing else is called one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from replaydbg.cli.main import main
from replaydbg.errors import ReplaydbgError
from replaydbg.groups.group_cuts import GroupCuts
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.groups.stable_properties import Deadlock, StableProperties
from replaydbg.log.group import read_group
from tests.harness import tool
from tests.harness.children import CHILDREN, PROGRAMS, completed
from tests.harness.process import run
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).parents[2] / "fixtures" / "cuts"
DEADLOCKS, RING = FIXTURES / "deadlocks.py", FIXTURES / "token_ring.py"
WAITING = {
    "read_first": {(1, "receive", (2,)), (2, "receive", (1,))},
    "large_sends": {(1, "send", (2,)), (2, "send", (1,))},
    "ring": {(2, "semaphore", (3,)), (3, "semaphore", (4,)), (4, "semaphore", (2,))},
    "file_locks": {(2, "file-lock", (3,)), (3, "file-lock", (2,))},
    "eventfds": {(1, "eventfd", (1, 2)), (2, "eventfd", (1, 2))},
    "left_open": {(1, "child", (2, 3)), (2, "receive", (3,)), (3, "receive", (1,))},
}


def deadlock_in(group: Path) -> Deadlock | None:
    """Return the deadlock of a group that may still run."""
    try:
        return StableProperties(GroupCuts(OpenedGroup(group))).deadlock()
    except (ReplaydbgError, FileNotFoundError):
        return None  # it has only just begun


@contextmanager
def running(tmp_path: Path, words: list[str], options: tuple[str, ...] = CHILDREN) -> Iterator[Path]:
    """Record a program that does not end; yield the directory of its group, and end all of its processes afterwards."""
    command = tool.record(sys.executable, tmp_path / "made", words, options=options)
    launcher = subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    group = tmp_path / "made.rdbgs"
    try:
        yield group
        for each in read_group(group).processes:
            if each.pid and not each.has_ended:
                os.kill(each.pid, signal.SIGTERM)
        launcher.wait(timeout=60)
    finally:
        launcher.kill()
        launcher.wait()
    completed(group)


def record(tmp_path: Path, words: list[str], options: tuple[str, ...] = CHILDREN) -> Path:
    """Record a program that ends."""
    command = tool.record(sys.executable, tmp_path / "made", words, options=options)
    done = run(command, cwd=tmp_path, env=dict(os.environ), timeout=100)
    assert done.status == 0, done.stderr
    completed(tmp_path / "made.rdbgs")
    return tmp_path / "made.rdbgs"


def answers(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    code = main(["stable", "-q", "--json", *words])
    return code, json.loads(capsys.readouterr().out)


def core(found: dict[str, Any]) -> set[tuple[int, str, tuple[int, ...]]]:
    return {(each["process"], each["waits_for"], tuple(each["of"])) for each in found["threads"]}


@pytest.mark.parametrize("kind", WAITING)
def test_a_deadlock_is_found_while_it_lasts_and_in_its_recording(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(tmp_path, [str(DEADLOCKS), kind]) as group:
        wait_until(lambda: deadlock_in(group) is not None)
        live = deadlock_in(group)

    code, data = answers(capsys, str(group))

    assert live is not None
    assert {(each.process, each.kind, each.holders) for each in live.core} == WAITING[kind]
    assert code == 1
    assert core(data["deadlock"]) == WAITING[kind]
    assert data["deadlock"]["is_consistent"]
    assert data["problems"] == []


@pytest.mark.parametrize("kind", WAITING)
def test_there_is_none_in_a_program_that_does_it_right(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group = record(tmp_path, [str(DEADLOCKS), kind, "fine"])

    code, data = answers(capsys, str(group))

    assert (code, data["deadlock"]) == (0, None)
    assert data["termination"]["threads"] == []


@pytest.mark.parametrize("kind", WAITING)
def test_there_is_no_alarm_in_any_cut_before_it(kind: str, tmp_path: Path) -> None:
    with running(tmp_path, [str(DEADLOCKS), kind]) as group:
        wait_until(lambda: deadlock_in(group) is not None)
    properties = StableProperties(GroupCuts(OpenedGroup(group)))
    found = properties.deadlock()
    assert found is not None
    since = {each.process: each.position for each in found.core}

    for process, position in since.items():
        for earlier in range(1, position):
            cut = properties.cuts.latest(since | {process: earlier})
            assert not properties.waits.at(cut.positions).cores(), cut


def test_the_lines_of_calls_that_never_ended_are_those_of_the_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(tmp_path, [str(DEADLOCKS), "ring"]) as group:
        wait_until(lambda: deadlock_in(group) is not None)

    _, data = answers(capsys, str(group), "--lines")

    assert "deadlock" in data, data
    waiting = [*data["deadlock"]["threads"], *data["deadlock"]["others"]]
    lines = {each["process"]: each["source"] for each in waiting if not each["thread"]}
    lines = {process: line.partition("  #")[0] for process, line in lines.items()}
    assert lines == {1: "child.join()", 2: "with second:", 3: "with second:", 4: "with second:"}


def test_a_deadlock_that_ctrl_c_broke_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running(tmp_path, [str(DEADLOCKS), "read_first"]) as group:
        wait_until(lambda: deadlock_in(group) is not None)
        os.kill(read_group(group).processes[1].pid, signal.SIGINT)
        wait_until(lambda: all(each.has_ended for each in read_group(group).processes))

    code, data = answers(capsys, str(group))

    assert (code, core(data["deadlock"])) == (1, WAITING["read_first"])


SPAWNED = """\
import multiprocessing


def work(mine, other, both):
    with mine:
        both.wait()
        with other:
            pass


if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    one, two, both = spawn.Lock(), spawn.Lock(), spawn.Barrier(2)
    children = [spawn.Process(target=work, args=(*each, both)) for each in ((one, two), (two, one))]
    for child in children:
        child.start()
    for child in children:
        child.join()
"""

ITS_OUTPUT = """\
import subprocess
import sys

child = subprocess.Popen(
    [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
)
child.stdin.write(b"hello")
child.stdin.flush()
child.wait()
"""


@pytest.mark.parametrize(("source", "kinds"), [(SPAWNED, {"semaphore"}), (ITS_OUTPUT, {"child", "receive"})])
def test_a_deadlock_of_started_programs_is_found(
    source: str, kinds: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "prog.py").write_text(source)
    with running(tmp_path, ["prog.py"], PROGRAMS) as group:
        wait_until(lambda: deadlock_in(group) is not None)

    code, data = answers(capsys, str(group))

    assert (code, {each["waits_for"] for each in data["deadlock"]["threads"]}) == (1, kinds)


OUTSIDE = """\
import socket
import os

server = socket.create_server(("127.0.0.1", 0))
source, sink = os.pipe()
if not os.fork():
    os.close(sink)
    os.read(source, 1)
    os._exit(0)
os.close(source)
server.accept()
"""


def test_who_waits_for_the_outside_is_not_deadlocked_but_nothing_happens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "prog.py").write_text(OUTSIDE)

    def is_idle() -> bool:
        try:
            return StableProperties(GroupCuts(OpenedGroup(group))).termination() is not None
        except (ReplaydbgError, FileNotFoundError):
            return False

    with running(tmp_path, ["prog.py"]) as group:
        wait_until(is_idle)
        live = StableProperties(GroupCuts(OpenedGroup(group)))
        termination = live.termination()
        assert termination is not None
        assert {each.kind for each in termination.blocked} == {"outside", "receive"}
        assert live.deadlock() is None

    code, data = answers(capsys, str(group))

    assert (code, data["deadlock"]) == (0, None)
    assert {each["waits_for"] for each in data["termination"]["threads"]} == {"outside", "receive"}


# ---- what may look like one ----

WAITS_FOR_CHILD = """\
import os, queue, signal, threading, time
source, sink = os.pipe()
child = os.fork()
if not child:
    os.close(sink)
    os.read(source, 1)
    os._exit(0)
os.close(source)
"""
HEALTHY = {
    "a thread that waits for another one for a time": """\
waiter = threading.Thread(target=lambda: os.waitpid(child, 0))
waiter.start()
waiter.join(100)
os.write(sink, b"x")
""",
    "a thread that waits at a queue for a time": """\
def worker():
    try:
        queue.Queue().get(timeout=100)
    except queue.Empty:
        os.write(sink, b"x")
threading.Thread(target=worker).start()
os.waitpid(child, 0)
""",
    "a thread that sleeps": """\
threading.Thread(target=lambda: (time.sleep(100), os.write(sink, b"x"))).start()
os.waitpid(child, 0)
""",
    "an alarm": """\
signal.alarm(100)
os.waitpid(child, 0)
""",
    "a function that runs when a child ends": """\
signal.signal(signal.SIGCHLD, lambda *_: os.write(sink, b"x"))
if not os.fork():
    os.close(sink)
    time.sleep(100)
os.waitpid(child, 0)
""",
}


def is_waiting(group: Path) -> bool:
    """Whether both of the first two processes are in calls that have not ended."""
    try:
        members = OpenedGroup(group).matching.members[:2]
    except (ReplaydbgError, FileNotFoundError):
        return False
    return len(members) == 2 and all(0 in member.transfers.event for member in members)


@pytest.mark.parametrize("kind", HEALTHY)
def test_what_can_go_on_by_itself_is_no_certain_deadlock(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "prog.py").write_text(WAITS_FOR_CHILD + HEALTHY[kind])
    with running(tmp_path, ["prog.py"]) as group:
        wait_until(lambda: is_waiting(group))
        live = deadlock_in(group)

    code, data = answers(capsys, str(group))

    assert live is None or not live.is_certain
    assert code != 1
    assert data["deadlock"] is None or not data["deadlock"]["is_certain"]


CONNECTED = """\
import os, socket
server = socket.create_server(("127.0.0.1", 0))
if not os.fork():
    accepted, _ = server.accept()
    server.close()
    accepted.recv(1)
    os._exit(0)
connected = socket.create_connection(server.getsockname())
server.close()
connected.recv(1)
"""

PASSED = """\
import os, socket
one, other = socket.socketpair()
kept, given = socket.socketpair()
if not os.fork():
    for each in (one, kept, given):
        each.close()
    _, (number,), _, _ = socket.recv_fds(other, 1, 1)
    other.close()
    socket.socket(fileno=number).recv(1)
    os._exit(0)
other.close()
socket.send_fds(one, [b"x"], [given.fileno()])
given.close()
kept.recv(1)
"""


@pytest.mark.parametrize("source", [CONNECTED, PASSED])
def test_ends_that_were_accepted_or_passed_are_known(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "prog.py").write_text(source)
    with running(tmp_path, ["prog.py"]) as group:
        wait_until(lambda: deadlock_in(group) is not None)

    code, data = answers(capsys, str(group))

    assert (code, core(data["deadlock"])) == (1, {(1, "receive", (2,)), (2, "receive", (1,))})


# ---- tokens ----

Record = Callable[[str], Path]


@pytest.mark.parametrize(("fault", "expected"), [("", [1]), ("second", [1, 2]), ("lost", [1, 0])])
def test_tokens_are_counted_in_processes_and_in_flight(
    fault: str, expected: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group = record(tmp_path, [str(RING), "10", *filter(None, [fault])])

    code, data = answers(capsys, str(group), "--token", "int(has_token)", "--in-flight", "token")

    assert code == 0
    # A ring that ends early can leave one in a pipe that nobody reads.
    assert [each["total"] for each in data["tokens"]][:2] == expected


def test_a_token_without_those_in_flight_comes_and_goes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    group = record(tmp_path, [str(RING), "6"])

    _, data = answers(capsys, str(group), "--token", "int(has_token)")

    assert {each["total"] for each in data["tokens"]} == {0, 1}


def test_the_program_says_itself_when_it_is_settled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    group = record(tmp_path, [str(RING), "6"])

    _, data = answers(capsys, str(group), "--token", "int(has_token)", "--settled", "not has_token")

    # So it is always under way, and nobody has it.
    assert [each["total"] for each in data["tokens"]] == [0]
    assert data["cuts"] > 5


def test_when_a_condition_became_true(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    group = record(tmp_path, [str(RING), "6", "lost"])
    flight = "m.count(b'token')"

    lost = answers(capsys, str(group), "--local", "int(has_token)", "--channel", flight, "--holds", "total == 0")
    never = answers(capsys, str(group), "--local", "int(has_token)", "--channel", flight, "--holds", "total == 2")

    assert lost[0] == 0
    assert lost[1]["since"] is not None
    assert (never[0], never[1]["since"]) == (3, None)


@pytest.mark.parametrize(
    "words",
    [
        ["--local", "1"],
        ["--holds", "1"],
        ["--token", "1", "--local", "1", "--holds", "1"],
        ["--in-flight", "x"],
        ["--settled", "x"],
        ["--token", "1", "--settled", "("],
        ["--token", "1", "--in-flight", "("],
        ["--token", "'text'"],
    ],
)
def test_options_that_do_not_fit_get_one_sentence(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group = record(tmp_path, [str(RING), "2"])

    code = main(["stable", "-q", str(group), *words])

    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    assert len(said.err.splitlines()) == 1
    assert "Traceback" not in said.err


ENDED_BY_ITS_PARENT = """\
import fcntl, os, signal
signal.alarm(1000)
pipes = [os.pipe(), os.pipe()]
children = []
for at in (0, 1):
    child = os.fork()
    if child == 0:
        own, other = (open(name, "w") for name in ("ab" if at else "ba"))
        fcntl.flock(own, fcntl.LOCK_EX)
        os.write(pipes[at][1], b"1")
        os.read(pipes[1 - at][0], 1)
        fcntl.flock(other, fcntl.LOCK_EX)
        os._exit(0)
    children.append(child)
open("end").read()
for child in children:
    os.kill(child, signal.SIGKILL)
for child in children:
    os.waitpid(child, 0)
"""


def test_a_deadlock_that_a_process_of_the_group_ended(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(ENDED_BY_ITS_PARENT)
    os.mkfifo(tmp_path / "end")
    with running(tmp_path, ["prog.py"]) as group:
        wait_until(lambda: deadlock_in(group) is not None)  # although their parent has a timer
        with (tmp_path / "end").open("w"):
            pass
        wait_until(lambda: read_group(group).is_complete)

    found = deadlock_in(group)
    assert found is not None
    assert {(each.process, each.kind, tuple(each.holders)) for each in found.core} == WAITING["file_locks"]
