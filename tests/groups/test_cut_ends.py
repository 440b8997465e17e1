"""Cuts contain the close or the shutdown that ended a stream, connect() of a connection, and peeked bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from replaydbg.cli.main import main
from replaydbg.events.records import Event
from replaydbg.groups.group_cuts import GroupCuts
from replaydbg.groups.group_ends import require_ends
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.log.reader import open_recording
from replaydbg.store.directory import member_path
from tests.harness.recorded_group import record_program

pytestmark = pytest.mark.slow

SHUTDOWNS = """\
import os, socket
one, other = socket.socketpair()
server = socket.create_server(("127.0.0.1", 0))
if os.fork() == 0:
    other.close()
    one.recv(10)
    client = socket.create_connection(server.getsockname())
    client.sendall(b"hello")
    client.shutdown(socket.SHUT_WR)  # half
    client.recv(10)
    client.recv(10)  # end of answer
    client.close()
    one.recv(1)  # end of pair
    os._exit(0)
one.close()
other.sendall(b"x")
accepted, _ = server.accept()  # accept
accepted.recv(10)
accepted.recv(10)  # end of request
accepted.sendall(b"answer")
accepted.shutdown(socket.SHUT_RDWR)  # both
other.close()  # pair
accepted.close()
os.wait()
"""

PIPE = """\
import os
reading, writing = os.pipe()
ready, go = os.pipe()
for number in range(2):
    if os.fork() == 0:
        os.read(ready, 1)
        os.close(writing)  # writer
        os._exit(0)
os.close(writing)  # parent
os.write(go, b"12")
with open(reading, "rb", buffering=0) as file:
    file.readall()  # end
os.wait()
os.wait()
"""

PEEKS = """\
import os, socket
one, other = socket.socketpair(type=getattr(socket, "KIND"))
ready, go = os.pipe()
if os.fork() == 0:
    one.recv(4, socket.MSG_PEEK)
    os.write(go, b"1")
    one.recv(2, socket.MSG_PEEK)
    one.recv(4)
    os._exit(0)
other.send(b"abcd")
os.read(ready, 1)
other.send(b"efgh")
os.wait()
"""

NOT_ENDS = """\
import os, socket
reading, writing = os.pipe()
one, other = socket.socketpair(type=socket.SOCK_DGRAM)
if os.fork() == 0:
    os.read(reading, 0)  # nothing
    other.recv(1)  # empty
    os.write(writing, b"1")
    os._exit(0)
one.send(b"")
os.close(writing)  # closed
one.close()
os.read(reading, 1)
os.wait()
"""


KILLED = """\
import fcntl, os, signal
reading, writing = os.pipe()
ready, go = os.pipe()
killed = os.fork()
if killed == 0:
    file = open("lock", "w")
    fcntl.flock(file, fcntl.LOCK_EX)
    os.write(go, b"1")
    signal.pause()
os.read(ready, 1)
if os.fork() == 0:
    os.close(writing)
    os.kill(killed, signal.SIGKILL)
    os._exit(0)
os.close(writing)
MEET
os.wait()
os.wait()
"""


def cuts_of(group: Path) -> GroupCuts:
    cuts = GroupCuts(OpenedGroup(group))
    assert require_ends(cuts) == ""
    return cuts


def numbers(group: Path, process: int, gate: str) -> list[int]:
    """Return the events of a kind after the fork, in order."""
    with open_recording(member_path(group, process)) as recording:
        events = [each for each in recording.events() if isinstance(each, Event)]
    fork = max(each.number for each in events if each.gate == "posix.fork") if process > 1 else 0
    return [each.number for each in events if each.gate.endswith(gate) and each.number > fork]


def test_the_order_of_events_has_ends_of_streams(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    group = record_program(tmp_path, SHUTDOWNS)
    end_of_pair = numbers(group, 2, "socket.recv")[-1]
    closed, accepted = (numbers(group, 1, f"socket.{each}")[-1] for each in ("close", "_accept"))
    connect = numbers(group, 2, "socket.connect")[0]

    orders = []
    for one, other in ((f"1@{accepted}", f"2@{connect}"), (f"2@{end_of_pair}", f"1@{closed - 1}")):
        status = main(["order", str(group), one, other])
        orders.append((status, capsys.readouterr().out.split()[1:3]))

    assert orders == [(0, ["came", "after"]), (0, ["came", "after"])]


def test_a_shutdown_ends_a_stream(tmp_path: Path) -> None:
    group = record_program(tmp_path, SHUTDOWNS)
    cuts = cuts_of(group)
    end_of_answer, end_of_pair = numbers(group, 2, "socket.recv")[-2:]
    half, both = numbers(group, 2, "socket.shutdown")[0], numbers(group, 1, "socket.shutdown")[0]
    end_of_request = numbers(group, 1, "socket.recv")[1]

    assert cuts.finder.latest({1: both - 1})[2] == end_of_answer - 1
    assert cuts.finder.latest({1: both})[2] >= end_of_answer
    assert cuts.finder.latest({2: half - 1})[1] == end_of_request - 1
    # It has not closed the connection: its shutdown is enough.
    assert cuts.finder.latest({2: half})[1] >= end_of_request
    # The last close is that of the pair.
    pair = numbers(group, 1, "socket.close")[1]
    assert cuts.finder.latest({1: pair - 1})[2] == end_of_pair - 1
    assert cuts.finder.latest({1: pair})[2] >= end_of_pair


def test_an_accepted_connection_was_begun(tmp_path: Path) -> None:
    group = record_program(tmp_path, SHUTDOWNS)
    cuts = cuts_of(group)
    accept, connect = numbers(group, 1, "socket._accept")[0], numbers(group, 2, "socket.connect")[0]

    assert cuts.finder.latest({2: connect - 1})[1] == accept - 1
    assert cuts.finder.latest({2: connect})[1] >= accept


def test_all_writers_have_closed_a_pipe(tmp_path: Path) -> None:
    group = record_program(tmp_path, PIPE)
    cuts = cuts_of(group)
    end = numbers(group, 1, "FileIO.readall")[-1]

    for process in (2, 3):
        close = numbers(group, process, "posix.close")[0]
        assert cuts.finder.latest({process: close - 1})[1] == end - 1
        assert cuts.finder.latest({process: close})[1] >= end


def test_what_reads_nothing_is_no_end(tmp_path: Path) -> None:
    group = record_program(tmp_path, NOT_ENDS)
    cuts = cuts_of(group)
    closed = numbers(group, 1, "posix.close")[0]

    # The datagram was sent before; nothing else is needed.
    assert cuts.finder.latest({1: closed - 1})[2] >= numbers(group, 2, "posix.write")[0]


def test_the_command_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    group = record_program(tmp_path, PIPE)
    end, close = numbers(group, 1, "FileIO.readall")[-1], numbers(group, 2, "posix.close")[0]

    assert main(["cut", str(group), f"2@{close - 1}"]) == 0
    lines = capsys.readouterr().out.splitlines()

    assert lines[0].split("\t")[:2] == ["1", str(end - 1)]


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
def test_what_was_peeked_at_was_sent(tmp_path: Path, kind: str) -> None:
    group = record_program(tmp_path, PEEKS.replace("KIND", kind))
    finder = GroupCuts(OpenedGroup(group)).finder
    send, later = numbers(group, 1, "socket.send")
    first = numbers(group, 2, "socket.recv")[0]

    assert finder.latest({1: send - 1})[2] == first - 1
    assert finder.latest({1: send})[2] >= first
    assert finder.latest({1: later - 1}) == finder.latest({1: later}) | {1: later - 1}


@pytest.mark.parametrize(
    ("meets", "gate"),
    [
        ("os.read(reading, 1)", "posix.read"),
        ("fcntl.flock(open('lock', 'r+'), fcntl.LOCK_EX)", "fcntl.flock"),
        ("os.waitpid(killed, 0); os.fork() or os._exit(0)", "posix.waitpid"),
    ],
)
def test_the_end_of_a_killed_process_needs_its_kill(tmp_path: Path, meets: str, gate: str) -> None:
    group = record_program(tmp_path, KILLED.replace("MEET", meets))
    finder = cuts_of(group).finder
    met, (kill,) = numbers(group, 1, gate)[-1], numbers(group, 3, "posix.kill")

    without, with_it = (finder.latest({1: met, 3: position})[1] for position in (kill - 1, kill))
    assert (without, with_it) == (met - 1, met)
