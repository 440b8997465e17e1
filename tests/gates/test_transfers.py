"""Sends and receives of each process of a group are recorded exactly: the fixture knows what it has moved."""

import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from replaydbg.events.transfers import Endpoint, Transfer, joined_digest
from replaydbg.log.reader import open_recording
from replaydbg.log.transfers import has_transfers, read_transfers
from tests.harness import tool
from tests.harness.children import CHILDREN, RecordedGroup, completed, record_group
from tests.harness.replay_cases import Case, cases
from tests.harness.replays import run

pytestmark = pytest.mark.slow


def _read(path: Path) -> tuple[list[Endpoint], list[Transfer]]:
    with open_recording(path) as recording:
        recording.check()
        assert recording.damage == ()
        ends, columns = read_transfers(recording)
    return ends, list(columns.transfers())


def _channels(ends: list[Endpoint], transfers: list[Transfer]) -> list[tuple[Endpoint, Transfer]]:
    """Return the transfers of channels, in the order of their events.

    Without what the program has printed, and without waits for processes, signals, files and closes: it counts none.
    """
    ordered = sorted(transfers, key=lambda each: each.event or 1 << 62)
    found = [(ends[each.endpoint - 1], each) for each in ordered if not each.stream]
    found = [each for each in found if each[0].kind not in ("process", "signal", "file", "stream")]
    assert not [end for end, _ in found if end.kind == "output"]
    return found


def _shown(end: Endpoint, each: Transfer) -> list[Any]:
    flags = [
        name for name, is_set in (("peeks", each.peeks), ("urgent", each.urgent), ("open", not each.event)) if is_set
    ]
    own = end.own if end.kind != "semaphore" else ""
    return [end.kind, each.way, own, each.length, each.digest, each.address, *flags]


def _check_as_told(name: str, told: list[list[Any]], found: list[tuple[Endpoint, Transfer]]) -> None:
    shown = [_shown(*each) for each in found]
    for index, each in enumerate(told):
        if each[3] is None:  # the program does not know how much of it was taken
            shown[index][3:5] = [None, None]
    if name == "threads":  # a thread may go on before another one has noted what it did
        told, shown = sorted(told), sorted(shown)
    assert shown == told


def _check_tickets(members: dict[int, list[tuple[Endpoint, Transfer]]]) -> None:
    taken = [each.ticket for found in members.values() for _, each in found if each.ticket]
    assert len(set(taken)) == len(taken)
    for found in members.values():
        for _, each in found:
            assert (each.ticket > 0) == (each.event > 0 or each.way == "send")
            assert not each.event or each.begun < each.event


def _direction(end: Endpoint, each: Transfer) -> tuple[Any, ...] | None:
    """Return the direction of a stream; None for what is none, or whose other end is unknown."""
    if end.kind in ("pipe", "fifo"):
        return end.kind, end.own
    if end.kind in ("tcp", "unix") and end.peer and not each.urgent:
        return (end.kind, end.own, end.peer) if each.way == "send" else (end.kind, end.peer, end.own)
    return None


def _check_streams(members: dict[int, list[tuple[Endpoint, Transfer]]], *, all_received: bool) -> int:
    """Check that what was received on each stream is what was sent there, in the order of the tickets."""
    streams: dict[tuple[Any, ...], dict[str, list[Transfer]]] = defaultdict(lambda: {"send": [], "receive": []})
    for found in members.values():
        for end, each in found:
            direction = _direction(end, each)
            if direction is not None and not each.peeks:
                streams[direction][each.way].append(each)
    checked = 0
    for direction, sides in streams.items():
        totals = {way: sum(each.length for each in side) for way, side in sides.items()}
        assert totals["receive"] <= totals["send"], direction
        if all_received:
            assert totals["receive"] == totals["send"], direction
        if totals["receive"] == totals["send"] and all(
            each.digest for side in sides.values() for each in side if each.length
        ):
            orders = [sorted(sides["receive"], key=lambda each: each.ticket)]
            if len(orders[0]) == 2:
                orders.append(orders[0][::-1])  # of two processes that both wait: the second may take its ticket first
            sent = _joined(sorted(sides["send"], key=lambda each: each.ticket))
            assert sent in [_joined(order) for order in orders], direction
            checked += totals["send"] > 0
    return checked


def _joined(side: list[Transfer]) -> int:
    digest = 0
    for each in side:
        digest = joined_digest(digest, each.digest, each.length)
    return digest


def _members(made: RecordedGroup) -> dict[int, list[tuple[Endpoint, Transfer]]]:
    return {each.number: _channels(*_read(made.recording(each.number))) for each in made.recorded_processes()}


_KEEPS_SOME = {"closed_by_c_code", "numbers_used_again", "killed_in_a_read", "queue", "pool", "tcp"}
"""Where bytes stay in a channel, or where two connections have the same addresses in turn."""


@pytest.mark.parametrize("case", cases("children", "transfers"))
def test_transfers_are_what_the_program_moved(case: Case) -> None:
    made = record_group(case)
    name = case.args[0]
    members = _members(made)

    lines = [json.loads(line) for line in made.recorded.stdout.splitlines()]
    told = {line["pid"]: line["moved"] for line in lines}
    assert name in ("queue", "pool") or len(told) == len(members)
    for process in made.recorded_processes():
        if process.pid in told:
            _check_as_told(name, told[process.pid], members[process.number])
    _check_tickets(members)
    checked = _check_streams(members, all_received=name not in _KEEPS_SOME)
    assert checked or name in (
        "udp",
        "unix_datagrams",
        "moved_by_the_kernel",
        "killed_in_a_read",
        "semaphores",
        "unix_closed_early",
    )
    made.scene.remove()


def test_both_sides_of_a_socket_know_each_other() -> None:
    made = record_group(_case("unix_stream"))
    ends = {number: _read(made.recording(number))[0] for number in (1, 2)}

    server, client = (next(each for each in ends[number] if each.kind == "unix") for number in (1, 2))
    assert server.path.endswith("/socket")
    assert client.own == server.peer
    assert (client.peer, client.path, client.peer_path) == (server.own, "", server.path)
    assert server.cookie and client.cookie and server.cookie != client.cookie
    made.scene.remove()


def test_a_peer_that_was_closed_before_it_was_accepted_has_a_process() -> None:
    made = record_group(_case("unix_closed_early"))
    ends = {number: _read(made.recording(number))[0] for number in (1, 2)}

    server, client = (next(each for each in ends[number] if each.kind == "unix") for number in (1, 2))
    assert (server.peer, server.peer_pid) == ("", made.group.processes[1].pid)
    assert (client.peer_path, client.peer_pid) == (server.path, made.group.processes[0].pid)
    made.scene.remove()


def test_a_peer_that_is_gone_stays_known() -> None:
    made = record_group(_case("peer_is_gone"))
    ends, child_ends = ([each for each in _read(made.recording(number))[0] if each.kind == "unix"] for number in (1, 2))

    assert len(ends) == len(child_ends) == 1
    assert (ends[0].own, ends[0].peer) == (child_ends[0].peer, child_ends[0].own)
    made.scene.remove()


def test_copies_of_a_descriptor_are_one_endpoint() -> None:
    made = record_group(_case("copies"))
    ends, transfers = _read(made.recording(1))

    sends = [each for each in transfers if each.way == "send" and not each.stream]
    sends = [each for each in sends if ends[each.endpoint - 1].kind != "stream"]  # nor closes
    assert len(sends) == 4
    assert {each.endpoint for each in sends} == {next(each.number for each in ends if each.kind == "pipe")}
    made.scene.remove()


def test_a_semaphore_has_the_same_name_in_each_process() -> None:
    made = record_group(_case("semaphores"))
    names = {
        number: {each.own for each in _read(made.recording(number))[0] if each.kind == "semaphore"} for number in (1, 2)
    }

    assert names[1] == names[2]
    assert len(names[1]) == 1
    assert next(iter(names[1])).startswith("/mp-")
    made.scene.remove()


def test_all_output_has_tickets() -> None:
    made = record_group(_case("pipe"))
    printed = []
    for process in made.recorded_processes():
        for each in _read(made.recording(process.number))[1]:
            if each.stream == 1:
                printed.append((each.ticket, each.length))

    assert sum(length for _, length in printed) == len(made.recorded.stdout.encode())
    lines = made.recorded.stdout.encode().splitlines(keepends=True)
    assert [length for _, length in sorted(printed)] == [len(line) for line in lines]
    made.scene.remove()


_FOR_EVER = """
import os
there, back = os.pipe(), os.pipe()
if os.fork() == 0:
    while True:
        os.write(back[1], os.read(there[0], 10))
for number in range(10**9):
    os.write(there[1], b"%010d" % number)
    os.read(back[0], 10)
    if number == 1000:
        print("enough", flush=True)
"""


def test_a_group_that_is_killed_keeps_its_transfers(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_FOR_EVER)
    command = tool.record(sys.executable, tmp_path / "r", ["program.py"], options=CHILDREN)
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, start_new_session=True) as launcher:
        assert launcher.stdout is not None
        launcher.stdout.readline()
        os.killpg(launcher.pid, signal.SIGKILL)
    group = completed(tmp_path / "r.rdbgs")

    members = {each.number: _channels(*_read(tmp_path / "r.rdbgs" / f"{each.number}.rdbg")) for each in group.processes}
    _check_tickets(members)
    for sender, receiver in ((1, 2), (2, 1)):
        sends = [each for _, each in members[sender] if each.way == "send"]
        receives = [each for _, each in members[receiver] if each.way == "receive" and each.event]
        assert len(sends) >= len(receives) >= 1000
        for send, receive in zip(sends, receives, strict=False):
            assert (send.digest, send.length) == (receive.digest, receive.length) or not send.event
            assert send.ticket < receive.ticket


def test_a_recording_of_one_process_has_no_transfers(tmp_path: Path) -> None:
    program = _case("pipe").program
    command = tool.record(sys.executable, tmp_path / "one.rdbg", [str(program), "pipe"])
    done = run(command, cwd=tmp_path, env=dict(os.environ))
    assert done.status == 0, done.stderr
    with open_recording(tmp_path / "one.rdbg") as recording:
        assert not has_transfers(recording)
        assert "transfers" not in recording.sections


def _case(name: str) -> Case:
    found: Case = next(each.values[0] for each in cases("children", "transfers") if each.values[0].args == (name,))
    return found
