"""Bytes under way between the processes of a group are there again when they go on, or the group refuses."""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from replaydbg.recovery.recovery_line import find_line
from replaydbg.recovery.shared_ends import SharedEnds
from replaydbg.resources.follow import resources_at
from replaydbg.store.directory import member_path
from tests.group_futures.made_group import MadeGroup
from tests.recovery.killed_groups import record_killed, replaydbg

pytestmark = pytest.mark.slow

# The child receives when its standard input, or the pipe from its parent, has ended: in the second run.
_MESSAGES = """import os, socket, sys
one, other = socket.socketpair(socket.AF_UNIX, socket.{kind})
begin, go = os.pipe()
told, tell = os.pipe()
if not os.fork():
    one.close(), os.close(go)
    os.write(tell, b"x")
    os.read(begin, 1)
    print(other.recv(100), other.recv(100), flush=True)
    os._exit(0)
other.close()
os.read(told, 1)
one.send(b"one")
one.send(b"two")
open("ready", "w").close()
sys.stdin.readline()
os.close(go)
print(os.wait()[1])
"""


@pytest.mark.parametrize("kind", ["SOCK_DGRAM", "SOCK_SEQPACKET"])
def test_messages_keep_their_bounds(kind: str, tmp_path: Path) -> None:
    record_killed(tmp_path, _MESSAGES.format(kind=kind))

    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert (resumed.status, resumed.stdout) == (0, b"b'one' b'two'\n0\n"), resumed
    replayed = replaydbg(tmp_path, "replay", "two")
    assert (replayed.status, replayed.stdout) == (0, resumed.stdout), replayed


_TO_A_NAME = """import os, socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind("address")
begin, go = os.pipe()
told, tell = os.pipe()
if not os.fork():
    os.close(go)
    print(receiver.recv(100), flush=True)
    os.write(tell, b"x")
    os.read(begin, 1)
    print(receiver.recv(100), flush=True)
    os._exit(0)
receiver.close()
sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
sender.sendto(b"first", "address")
os.read(told, 1)
sender.sendto(b"second", "address")
open("ready", "w").close()
sys.stdin.readline()
"""


def test_messages_to_a_name_are_refused(tmp_path: Path) -> None:
    record_killed(tmp_path, _TO_A_NAME)

    refused = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert refused.status == 2, refused
    assert b"messages were in flight to a socket that is not part of a pair" in refused.stderr


_DESCRIPTORS = """import os, socket, sys
one, other = socket.socketpair()
begin, go = os.pipe()
told, tell = os.pipe()
if not os.fork():
    one.close(), os.close(go)
    os.write(tell, b"x")
    os.read(begin, 1)
    socket.recv_fds(other, 100, 1)
    os._exit(0)
other.close()
os.read(told, 1)
socket.send_fds(one, [b"one"], [os.open("program.py", os.O_RDONLY)])
open("ready", "w").close()
sys.stdin.readline()
"""


def test_descriptors_in_flight_are_refused(tmp_path: Path) -> None:
    record_killed(tmp_path, _DESCRIPTORS)

    refused = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert refused.status == 2, refused
    assert b"descriptors that process 1 sent (SCM_RIGHTS) were in flight" in refused.stderr


# Only the parent knows the port that the kernel chose.
_INHERITED = """import os, socket, sys
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(("127.0.0.1", 0))
begin, go = os.pipe()
told, tell = os.pipe()
if not os.fork():
    os.close(go)
    os.write(tell, b"x")
    os.read(begin, 1)
    print(receiver.recv(100), flush=True)
    os._exit(0)
os.read(told, 1)
address = receiver.getsockname()
open("ready", "w").close()
sys.stdin.readline()
receiver.sendto(b"hello", address)
os.close(go)
print(os.wait()[1])
"""


def test_what_one_process_knows_all_have(tmp_path: Path) -> None:
    record_killed(tmp_path, _INHERITED)

    plan = json.loads(replaydbg(tmp_path, "resume", "one", "--plan", "--json").stdout)
    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    rows = [row for each in plan["processes"] for row in each["plan"]["resources"] if row["kind"] == "sockets"]
    assert [row["fate"] for row in rows] == ["reopened"] * 2
    assert rows[0]["text"] == rows[1]["text"]
    assert (resumed.status, resumed.stdout) == (0, b"b'hello'\n0\n"), resumed


# Of three connections, two are closed before the server accepts them.
_CLOSED = """import os, socket, sys
listener = {listener}
address = listener.getsockname()
begin, go = os.pipe()
told, tell = os.pipe()
heard, hear = os.pipe()
if not os.fork():
    os.close(go), listener.close()
    for data in (b"first", b"", b"third" * 1000):
        client = socket.socket(listener.family)
        client.connect(address)
        client.sendall(data)
        if data == b"first":
            os.read(heard, 1)
        client.close()
    os.write(tell, b"x")
    os.read(begin, 1)
    os._exit(0)
accepted, _ = listener.accept()
print(len(accepted.recv(100)))
os.write(hear, b"x")
os.read(told, 1)
open("ready", "w").close()
sys.stdin.readline()
for _ in range(2):
    accepted, _ = listener.accept()
    print(sum(map(len, iter(lambda: accepted.recv(5000), b""))))
os.close(go)
print(os.wait()[1])
"""


@pytest.mark.parametrize(
    "listener", ['socket.create_server(("127.0.0.1", 0))', 'socket.create_server("here", family=socket.AF_UNIX)']
)
def test_connections_that_were_closed_before_they_are_accepted(listener: str, tmp_path: Path) -> None:
    record_killed(tmp_path, _CLOSED.format(listener=listener))

    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert resumed.status == 0, resumed
    assert resumed.stdout == b"5\n0\n5000\n0\n", resumed


# The queue of the listening socket has room for one connection; the others go on in the background.
_FULL = """import os, socket, sys
listener = socket.create_server(("127.0.0.1", 0), backlog=0)
address = listener.getsockname()
begin, go = os.pipe()
told, tell = os.pipe()
if not os.fork():
    os.close(go), listener.close()
    clients = [socket.socket() for _ in range(3)]
    for client in clients:
        client.setblocking(False)
        client.connect_ex(address)
    os.write(tell, b"x")
    os.read(begin, 1)
    os._exit(0)
os.read(told, 1)
open("ready", "w").close()
sys.stdin.readline()
"""


def test_more_connections_than_a_listening_socket_takes(tmp_path: Path) -> None:
    record_killed(tmp_path, _FULL)

    refused = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert refused.status == 2, refused
    assert b"a connection to 127.0.0.1:" in refused.stderr and b"timed out" in refused.stderr
    assert not (tmp_path / "two.rdbgs").exists()


_APPENDED = """import os, sys
shared = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
begin, go = os.pipe()
told, tell = os.pipe()
if not os.fork():
    os.close(go)
    os.write(shared, b"child\\n")
    os.write(tell, b"x")
    os.read(begin, 1)
    os.write(shared, b"child\\n")
    os._exit(0)
os.read(told, 1)
os.write(shared, b"parent\\n")
open("ready", "w").close()
sys.stdin.readline()
os.close(go)
os.wait()
os.write(shared, b"parent\\n")
"""


def test_a_shared_file_that_is_written_at_its_end(tmp_path: Path) -> None:
    record_killed(tmp_path, _APPENDED)

    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert resumed.status == 0, resumed
    assert (tmp_path / "log").read_text() == "child\nparent\n" * 2


# Each child has ended when the parent receives: in the second run.
_LAST_WORDS = """import os, socket, sys
one, other = socket.socketpair(socket.AF_UNIX, socket.{kind})
result, report = os.pipe()
for number in range(2):
    if not (child := os.fork()):
        other.send(b"from %d" % number)
        other.send(b"more")
        os.write(report, b"%d " % (1000 + number))
        os._exit(number)
    if {waits}:
        os.waitpid(child, 0)
    elif number:
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
other.close(), os.close(report)
open("ready", "w").close()
sys.stdin.readline()
received = b""
while data := one.recv(100):
    received += data
    if len(received) == 20:
        break
print(sorted(received), sorted(os.read(result, 100).split()))
"""


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_SEQPACKET"])
def test_what_a_process_sent_before_it_ended(kind: str, waits: bool, tmp_path: Path) -> None:
    record_killed(tmp_path, _LAST_WORDS.format(kind=kind, waits=waits))

    planned = replaydbg(tmp_path, "resume", "one", "--plan")
    assert planned.status == 0 and b"10 bytes" in planned.stdout, planned
    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")
    expected = f"{sorted(b'from 0morefrom 1more')} [b'1000', b'1001']\n".encode()
    assert (resumed.status, resumed.stdout) == (0, expected), resumed
    replayed = replaydbg(tmp_path, "replay", "two")
    assert (replayed.status, replayed.stdout) == (0, expected), replayed


# The module subprocess makes an epoll and closes it when it is imported; sockets get its number afterwards.
# Nobody has used these connections, and only their acceptor knows the addresses from which they came.
_UNUSED = """import os, socket, sys
listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
begin, go = os.pipe()
for number, listener in enumerate(listeners):
    if not os.fork():
        os.close(go)
        with socket.create_connection(listener.getsockname()) as to_parent:
            os.read(begin, 1)
            to_parent.sendall(b"from %d" % number)
        os._exit(0)
accepted = [each.accept()[0] for each in listeners]
open("ready", "w").close()
sys.stdin.readline()
os.close(go)
print(*[each.recv(100) for each in accepted])
print(*[os.wait()[1] for _ in accepted])
"""


def test_connections_that_nobody_has_used_are_told_apart_by_their_listening_sockets(tmp_path: Path) -> None:
    record_killed(tmp_path, _UNUSED)

    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert (resumed.status, resumed.stdout) == (0, b"b'from 0' b'from 1' b'from 2'\n0 0 0\n"), resumed
    replayed = replaydbg(tmp_path, "replay", "two")
    assert (replayed.status, replayed.stdout) == (0, resumed.stdout), replayed


# The same with one listening socket: they were begun in a known order, one was closed, and one is not accepted yet.
_IN_ORDER = """import os, socket, sys
listener = {listener}
begin, go = os.pipe()
told, tell = os.pipe()
asked = []
for number in range(5):
    asked.append(os.pipe())
    if not os.fork():
        os.close(go)
        os.read(asked[number][0], 1)
        to_parent = socket.socket(listener.family)
        to_parent.setblocking(False)
        to_parent.connect_ex(listener.getsockname())
        if number == 1:
            to_parent.close()
        os.write(tell, b"x")
        os.read(begin, 1)
        if number != 1:
            to_parent.setblocking(True)
            to_parent.sendall(b"from %d" % number)
        os._exit(0)
for number in (3, 1, 4, 0, 2):
    os.write(asked[number][1], b"x")
    os.read(told, 1)
accepted = [listener.accept()[0] for _ in range(4)]
open("ready", "w").close()
sys.stdin.readline()
os.close(go)
accepted.append(listener.accept()[0])
print(*[each.recv(100) for each in accepted])
print(*[os.wait()[1] for _ in accepted])
"""


@pytest.mark.parametrize(
    "listener", ['socket.create_server(("127.0.0.1", 0))', 'socket.create_server("here", family=socket.AF_UNIX)']
)
def test_connections_that_nobody_has_used_are_told_apart_by_their_order(listener: str, tmp_path: Path) -> None:
    record_killed(tmp_path, _IN_ORDER.format(listener=listener))

    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    expected = b"b'from 3' b'' b'from 4' b'from 0' b'from 2'\n0 0 0 0 0\n"
    assert (resumed.status, resumed.stdout) == (0, expected), resumed
    replayed = replaydbg(tmp_path, "replay", "two")
    assert (replayed.status, replayed.stdout) == (0, resumed.stdout), replayed


# Its parent alone makes the listening socket of both non-blocking, as asyncio does.
_NON_BLOCKING = """import os, socket, sys
listener = socket.create_server(("127.0.0.1", 0))
listener.getsockname()
begin, go = os.pipe()
told, tell = os.pipe()
if not os.fork():
    os.close(go)
    os.write(tell, b"x")
    os.read(begin, 1)
    os._exit(0)
listener.setblocking(False)
os.read(told, 1)
open("ready", "w").close()
sys.stdin.readline()
try:
    listener.accept()
except BlockingIOError:
    print("nobody")
os.close(go)
print(os.wait()[1])
"""


def test_a_socket_that_one_process_made_non_blocking_is_so_for_all(tmp_path: Path) -> None:
    record_killed(tmp_path, _NON_BLOCKING)

    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert (resumed.status, resumed.stdout) == (0, b"nobody\n0\n"), resumed


_STARTED = """import socket, subprocess, sys
if sys.argv[1:]:
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as to_parent:
        while data := to_parent.recv(100):
            to_parent.sendall(data.upper())
        sys.exit()
listener = socket.create_server(("127.0.0.1", 0))
child = subprocess.Popen([sys.executable, "program.py", str(listener.getsockname()[1])])
to_child, _ = listener.accept()
for number in range(10):
    to_child.sendall(b"line %d" % number)
    assert to_child.recv(100) == b"LINE %d" % number
open("ready", "w").close()
sys.stdin.readline()
to_child.sendall(b"after")
print(to_child.recv(100))
to_child.close()
print(child.wait())
"""


def test_a_connection_to_a_started_program_is_there_again(tmp_path: Path) -> None:
    record_killed(tmp_path, _STARTED)

    plan = replaydbg(tmp_path, "resume", "one", "--plan")
    resumed = replaydbg(tmp_path, "resume", "one", "-o", "two")

    assert b"a connection, shared with process 2" in plan.stdout, plan
    assert (resumed.status, resumed.stdout) == (0, b"b'AFTER'\n0\n"), resumed
    replayed = replaydbg(tmp_path, "replay", "two")
    assert (replayed.status, replayed.stdout) == (0, resumed.stdout), replayed


def test_a_socket_that_is_not_connected_yet_has_no_other_end(tmp_path: Path) -> None:
    """Its log, and that of the process that accepts, know the connection only after the line."""
    made = MadeGroup.of_fixture(tmp_path, "account_over_tcp")
    with open_recording(tmp_path / "one.rdbgs" / "2.rdbg") as recording:
        connects = next(
            event.number
            for event in recording.events(controls=False)
            if isinstance(event, Event) and event.gate == "_socket.socket.connect"
        )

    line = find_line(tmp_path / "one.rdbgs", "one", {2: connects - 1})
    with ExitStack() as stack:
        resources = {
            each.number: resources_at(
                stack.enter_context(open_recording(member_path(line.directory, each.number))), each.position
            )
            for each in line.running
        }
        shared = SharedEnds(line, resources)

    assert line.positions[2] == connects - 1
    assert made.replaydbg("resume", "one.rdbgs", "--at-cut", f"2@{connects - 1}", "--plan").status == 0
    of_it = [each for each in shared.channels for end in each.ends if end.process == 2]
    assert not [each for each in of_it if each.kind in ("connection", "waiting")]
