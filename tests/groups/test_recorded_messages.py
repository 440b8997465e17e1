"""The messages of recorded programs are matched as the programs themselves say who sent what."""

from __future__ import annotations

import os
import pickle
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.distributed.matching.matching import Matched
from replaydbg.distributed.matching.segments import SURE
from replaydbg.events.records import Event
from replaydbg.groups.messages import Message, messages_of
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.log.reader import open_recording
from replaydbg.log.transfers import RECEIVES
from tests.harness import tool
from tests.harness.children import CHILDREN, completed, record_group
from tests.harness.process import run
from tests.harness.replay_cases import Case, cases

pytestmark = pytest.mark.slow


def recorded(tmp_path: Path, source: str) -> tuple[OpenedGroup, str]:
    """Record a program with its children; return the group and what it printed."""
    program = tmp_path / "prog.py"
    program.write_text(source)
    command = tool.record(sys.executable, tmp_path / "made", [str(program)], options=CHILDREN)
    done = run(command, cwd=tmp_path, env=dict(os.environ), timeout=100)
    assert done.status == 0, done.stderr
    completed(tmp_path / "made.rdbgs")
    return OpenedGroup(tmp_path / "made.rdbgs"), done.stdout.decode()


def received(opened: OpenedGroup) -> Iterator[tuple[int, bytes, list[Message]]]:
    """Yield for each event that received something: the process, the bytes, and what is known of them."""
    for index, member in enumerate(opened.matching.members):
        columns = opened.matching.members[index].transfers
        wanted = {
            columns.event[row]
            for row in range(columns.count)
            if columns.flags[row] & RECEIVES and columns.event[row] and columns.length[row]
        }
        with open_recording(opened.directory / f"{member.process}.rdbg") as recording:
            events = {each.number: each for each in recording.events(controls=False) if isinstance(each, Event)}
        for number in sorted(wanted):
            outcome = events[number].outcome
            data = outcome[0] if isinstance(outcome, tuple) else outcome
            if isinstance(data, bytes):
                yield member.process, data, messages_of(opened, member.process, number, is_receive=True)


def the_sender(messages: list[Message]) -> int:
    """Return the only process that sent something."""
    assert [part.certainty for message in messages for part in message.parts] == ["certain"]
    return messages[0].parts[0].end.process


def all_matched(opened: OpenedGroup) -> list[Matched]:
    return [opened.matching.match(each) for each in opened.matching.channels]


BANK = """
import os

pipes = {(one, other): os.pipe() for one in range(3) for other in range(3) if one != other}


def transfer(me):
    balance = 100
    for number in range(12):
        to = (me + 1 + number % 2) % 3
        os.write(pipes[me, to][1], b"%d %d;" % (me, number))
        balance -= number
        source = (me + 2 - number % 2) % 3
        text = b""
        while not text.endswith(b";"):
            text += os.read(pipes[source, me][0], 3)
        balance += int(text[2:-1])
    return balance


children = []
for me in (1, 2):
    pid = os.fork()
    if not pid:
        transfer(me)
        os._exit(0)
    children.append(pid)
print(transfer(0))
for pid in children:
    os.waitpid(pid, 0)
"""


def test_three_banks_over_pipes(tmp_path: Path) -> None:
    opened, printed = recorded(tmp_path, BANK)

    taken: dict[tuple[int, int], bytes] = {}
    for process, data, messages in received(opened):
        sender = the_sender(messages)
        taken[sender, process] = taken.get((sender, process), b"") + data
    for (sender, _), text in taken.items():
        assert {each.split()[0] for each in text.decode().split(";")[:-1]} == {str(sender - 1)}
    assert len(taken) == 6
    channels = [each for each in all_matched(opened) if each.channel.receivers]
    assert [(len(each.sends), each.lost, each.from_nowhere) for each in channels] == [(6, 0, 0)] * 6
    assert printed == "100\n"


QUEUES = """
import multiprocessing
import os


def work(tasks, results):
    for task in iter(tasks.get, None):
        results.put((os.getpid(), task))


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    tasks, results = multiprocessing.Queue(), multiprocessing.Queue()
    workers = [multiprocessing.Process(target=work, args=(tasks, results)) for _ in range(3)]
    for each in workers:
        each.start()
    for number in range(20):
        tasks.put(number)
    for each in workers:
        tasks.put(None)
    for number in range(20):
        print(*results.get())
    for each in workers:
        each.join()
"""


def test_queues_of_several_writers_and_readers(tmp_path: Path) -> None:
    opened, printed = recorded(tmp_path, QUEUES)

    pids = {each.pid: each.number for each in opened.group.processes}
    found = []
    for process, data, messages in received(opened):
        if data.startswith(b"\x80"):
            value = pickle.loads(data)
            if isinstance(value, tuple):
                assert process == 1
                assert the_sender(messages) == pids[value[0]]
                found.append(value)
            elif value is not None:
                assert the_sender(messages) == 1
    assert found == [tuple(map(int, line.split())) for line in printed.splitlines()]
    assert [each.contradiction for each in all_matched(opened)] == [None] * len(opened.matching.channels)


SERVER = """
import os
import socket

server = socket.create_server(("127.0.0.1", 0))
children = []
for number in range(3):
    pid = os.fork()
    if not pid:
        end = socket.create_connection(server.getsockname())
        for each in range(10):
            end.sendall(b"%d sends %d\\n" % (os.getpid(), each))
            answer = end.recv(100)
        end.close()
        os._exit(0)
    children.append(pid)
for pid in children:
    end, _ = server.accept()
    while line := end.recv(100):
        print(line.decode(), end="")
        end.sendall(b"for " + line.split()[0])
for pid in children:
    os.waitpid(pid, 0)
"""


def test_connections_over_tcp(tmp_path: Path) -> None:
    opened, printed = recorded(tmp_path, SERVER)

    pids = {each.pid: each.number for each in opened.group.processes}
    lines = []
    for process, data, messages in received(opened):
        pid = int(re.findall(rb"\d+", data)[0])
        if process == 1:
            assert the_sender(messages) == pids[pid]
            lines.append(data.decode())
        else:
            assert (the_sender(messages), pids[pid]) == (1, process)
    assert "".join(lines) == printed
    assert len(lines) == 30


DATAGRAMS = """
import os
import socket

end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.bind(("0.0.0.0", 0))
end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
pid = os.fork()
if not pid:
    mine = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for number in range(100):
        mine.sendto(b"%d" % (number % 40) + b"." * 200, ("127.0.0.1", end.getsockname()[1]))
    os._exit(0)
os.waitpid(pid, 0)
end.setblocking(False)
while True:
    try:
        print(end.recv(1000).decode())
    except BlockingIOError:
        break
"""


def test_datagrams_of_which_some_are_lost(tmp_path: Path) -> None:
    opened, printed = recorded(tmp_path, DATAGRAMS)

    (channel,) = [each for each in all_matched(opened) if each.channel.kind == "udp"]
    assert (channel.channel.senders, channel.channel.receivers) == ((2,), (1,))
    assert len(channel.segments) == len(channel.receives) == len(printed.split())
    assert channel.lost == 100 - len(printed.split()) > 0
    for at in range(len(channel.segments)):
        segment = channel.segments[at]
        fitting = (segment.send,) if segment.certainty == SURE else channel.candidates(at)
        # Nothing is lost before the buffer is full, and everything from there on.
        assert segment.receive in fitting


CROWD = """
import os
import socket
import threading

reads, writes = os.pipe()
here, there = socket.socketpair()
children = []
for number in range(3):
    pid = os.fork()
    if not pid:
        for each in range(500):
            os.write(writes, b"%d %d;" % (number + 2, each))
        os._exit(0)
    children.append(pid)
pid = os.fork()
if not pid:
    left = 4 * 100
    while left:
        text = here.recv(1 << 16)
        left -= text.count(b";")
        os.write(1, text)
    os._exit(0)
children.append(pid)


def send(number):
    for each in range(100):
        there.sendall(b"%d %d;" % (number, each))


threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
for each in threads:
    each.start()
for each in threads:
    each.join()
for pid in children:
    os.waitpid(pid, 0)
print("|", os.read(reads, 1 << 16).decode(), sep="")
"""


def test_writers_that_nothing_keeps_apart(tmp_path: Path) -> None:
    """Some of their sends are in another order than their tickets: what was received has the order."""
    opened, printed = recorded(tmp_path, CROWD)

    threads, processes = [text.strip().split(";")[:-1] for text in printed.split("|")]
    channels = {each.channel.kind: each for each in all_matched(opened) if each.channel.receivers}
    for found, texts in ((channels["unix"], threads), (channels["pipe"], processes)):
        assert not any(found.segments.certainty)
        sends = list(dict.fromkeys(found.segments.send))
        assert [found.sends.length[each] for each in sends] == [len(text) + 1 for text in texts]
        assert len(sends) == len(texts)
    of_pipe = channels["pipe"]
    senders = [of_pipe.sends.members[of_pipe.sends.place(each)[0]].process for each in of_pipe.segments.send]
    assert senders == [int(text.split()[0]) for text in processes]


DEADLOCK = """
import os
import signal

ends = os.pipe(), os.pipe()
os.write(ends[0][1], b"x")
os.write(ends[1][1], b"y")
begun = os.pipe()
children = []
for number in (0, 1):
    pid = os.fork()
    if not pid:
        os.read(ends[number][0], 1)
        os.write(begun[1], b"!")
        os.read(ends[number][0], 1)
        os._exit(0)
    children.append(pid)
for pid in children:
    os.read(begun[0], 1)
    while True:
        with open(f"/proc/{pid}/stat", "rb") as file:
            if file.read().rpartition(b")")[2].split()[0] == b"S":
                break
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
"""


def test_what_killed_processes_waited_for(tmp_path: Path) -> None:
    opened, _ = recorded(tmp_path, DEADLOCK)

    waiting = [
        (each.channel.senders, [opened.matching.members[index].process for index, _ in each.receives.open])
        for each in all_matched(opened)
        if each.receives.open
    ]
    assert waiting == [((1,), [2]), ((1,), [3])]


@pytest.mark.parametrize("case", cases("children", "transfers"))
def test_both_sides_of_every_kind_of_channel_agree(case: Case) -> None:
    made = record_group(case)

    opened = OpenedGroup(made.directory)
    assert opened.problems == {}
    for found in all_matched(opened):
        assert found.contradiction is None, found.channel
        assert found.early is None, found.channel
        assert not found.channel.doubt, found.channel
        if found.channel.senders and found.channel.receivers:
            assert found.from_nowhere == 0, found.channel
    made.scene.remove()


def test_the_prompt_shows_the_sender_of_what_was_just_received(tmp_path: Path) -> None:
    opened, _ = recorded(tmp_path, BANK)
    (member,) = [each for each in opened.matching.members if each.process == 2]
    event = next(number for row, number in enumerate(member.transfers.event) if member.transfers.flags[row] & RECEIVES)

    command = [sys.executable, "-m", "replaydbg", "debug", "-q", "--batch", str(tmp_path / "made.rdbgs" / "2")]
    done = run(
        [*command, "-c", f"seek {event}", "-c", "sender", "-c", "sender 1", "-c", f"receiver {event}"],
        cwd=tmp_path,
        env=dict(os.environ),
        timeout=100,
    )

    answers = done.stdout.decode() + done.stderr.decode()
    assert "os.write(pipes[me, to][1], b" in answers
    assert f"Event {event} of made/2 received something. Use `sender {event}`." in answers
    assert "Event 1 of made/1 received nothing through a channel." in answers
