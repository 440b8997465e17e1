"""Endpoints of all processes are grouped into channels: by identity, wildcard addresses, and the time of their use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.distributed.happens_before import edges_between
from replaydbg.distributed.matching.channels import MessageChannel, find_channels
from replaydbg.distributed.matching.matching import GroupMatching, Matched
from replaydbg.distributed.matching.segments import AMBIGUOUS
from tests.distributed.model import Wire, World


def channels(world: World) -> list[tuple[str, str, tuple[int, ...], tuple[int, ...]]]:
    return [(each.kind, each.name, each.senders, each.receivers) for each in find_channels(world.members())]


def matched(world: World) -> list[Matched]:
    group = GroupMatching(world.members())
    return [group.match(each) for each in group.channels]


@pytest.mark.parametrize("peer", ["127.0.0.1:80", "[::ffff:127.0.0.1]:80"])
def test_both_directions_of_a_connection(peer: str) -> None:
    world, there, back = World(2), Wire(), Wire()
    one, other = world.processes
    first, second = (
        one.open("tcp", "127.0.0.1:5", peer, cookie=3),
        other.open("tcp", "127.0.0.1:80", "127.0.0.1:5", cookie=4),
    )
    one.send(there, first, b"question")
    other.receive(there, second)
    other.send(back, second, b"answer")
    one.receive(back, first)

    assert channels(world) == [
        ("tcp", "127.0.0.1:5 -> 127.0.0.1:80", (1,), (2,)),
        ("tcp", "127.0.0.1:80 -> 127.0.0.1:5", (2,), (1,)),
    ]
    assert all(len(each.segments) == 1 and not each.lost for each in matched(world))
    assert [edge[:4] for edge in edges_between(GroupMatching(world.members()))] == [(1, 1, 2, 1), (2, 2, 1, 2)]


def test_a_socket_without_its_other_end_goes_outside() -> None:
    world, wire = World(1), Wire()
    (one,) = world.processes
    one.send(wire, one.open("tcp", "127.0.0.1:5", "93.184.216.34:80"), b"GET")

    assert channels(world) == [("tcp", "127.0.0.1:5 -> 93.184.216.34:80", (1,), ())]


def test_one_socket_of_several_processes() -> None:
    world, wire = World(3), Wire()
    ends = [each.open("tcp", "127.0.0.1:5", "127.0.0.1:80", cookie=3) for each in world.processes[:2]]
    reader = world.processes[2]
    end = reader.open("tcp", "127.0.0.1:80", "127.0.0.1:5", cookie=4)
    for process, number in zip(world.processes, ends, strict=False):
        process.send(wire, number, b"from %d" % process.number)
        reader.receive(wire, end)

    assert channels(world) == [("tcp", "127.0.0.1:5 -> 127.0.0.1:80", (1, 2), (3,))]
    assert not any(matched(world)[0].segments.certainty)


@given(st.lists(st.sampled_from([b"a", b"b", b"ab"]), min_size=2, max_size=6), st.data())
def test_ports_that_are_used_again(payloads: list[bytes], data: st.DataObject) -> None:
    """Each use is a connection of its own, also if the receiver reads late."""
    world = World(2)
    one, other = world.processes
    pending = []
    for number, payload in enumerate(payloads, 1):
        wire = Wire()
        one.send(wire, one.open("tcp", "127.0.0.1:5", "127.0.0.1:80", cookie=number), payload)
        pending.append((wire, other.open("tcp", "127.0.0.1:80", "127.0.0.1:5", cookie=100 + number)))
        if data.draw(st.booleans()):
            for each in pending:
                other.receive(*each)
            pending.clear()
    for each in pending:
        other.receive(*each)

    for found in matched(world):
        assert found.contradiction is None
        for at in range(len(found.segments)):
            segment = found.segments[at]
            place = world.truth[2, found.receives.place(segment.receive)[1]]
            is_right = [(each[0], each[1]) for each in place] == [(1, found.sends.place(segment.send)[1])]
            assert is_right or found.channel.doubt
    assert sum(len(found.segments) for found in matched(world)) == len(payloads)


def test_a_use_that_nobody_read_is_not_taken_for_the_next_one() -> None:
    world = World(2)
    one, other = world.processes
    lost, wire, back = Wire(), Wire(), Wire()
    one.send(lost, one.open("tcp", "127.0.0.1:5", "127.0.0.1:80", cookie=1), b"same")
    end, far = (
        one.open("tcp", "127.0.0.1:5", "127.0.0.1:80", cookie=2),
        other.open("tcp", "127.0.0.1:80", "127.0.0.1:5", cookie=9),
    )
    other.send(back, far, b"hello")
    one.receive(back, end)
    one.send(wire, end, b"same")
    other.receive(wire, far)

    by_cookie = [each for each in matched(world) if each.channel.senders == (1,)]
    assert [len(each.segments) for each in by_cookie] in ([0, 1], [1, 0])
    assert all(each.channel.doubt == "" for each in by_cookie)
    (read,) = [each for each in by_cookie if len(each.segments)]
    assert read.sends.place(0) == (0, 2)


def test_unix_sockets_by_their_inodes() -> None:
    world, wire = World(2), Wire()
    one, other = world.processes
    one.send(wire, one.open("unix", "11", "12"), b"x")
    other.receive(wire, other.open("unix", "12", "", path="/run/bank"))

    assert channels(world) == [("unix", "11 -> 12 /run/bank", (1,), (2,))]


def test_a_socket_that_is_connected_to_itself() -> None:
    world, wire = World(1), Wire()
    (one,) = world.processes
    end = one.open("tcp", "127.0.0.1:5", "127.0.0.1:5")
    one.send(wire, end, b"x")
    one.receive(wire, end)

    assert channels(world) == [("tcp", "127.0.0.1:5 -> 127.0.0.1:5", (1,), (1,))]
    assert len(matched(world)[0].segments) == 1


def test_urgent_data_is_a_channel_apart_and_peeking_takes_nothing() -> None:
    world, wire, urgent = World(2), Wire(), Wire()
    one, other = world.processes
    end, far = one.open("tcp", "127.0.0.1:5", "127.0.0.1:80"), other.open("tcp", "127.0.0.1:80", "127.0.0.1:5")
    one.send(wire, end, b"ab")
    one.send(urgent, end, b"!", urgent=True)
    other.receive(urgent, far, urgent=True)
    other.transfers.append(
        other.transfers[-1]._replace(event=2, begun=1, ticket=world.take_ticket(), urgent=False, peeks=True)
    )
    other.events += 1
    other.receive(wire, far)

    found = matched(world)

    assert [(each.channel.is_urgent, each.sent, each.received) for each in found] == [(False, 2, 2), (True, 1, 1)]
    assert all(each.contradiction is None and len(each.segments) == 1 for each in found)


@pytest.mark.parametrize(
    ("own", "far", "sent_to", "seen_from"),
    [
        ("127.0.0.1:5", "127.0.0.1:9", "127.0.0.1:9", "127.0.0.1:5"),
        ("0.0.0.0:5", "0.0.0.0:9", "127.0.0.1:9", "127.0.0.1:5"),
        ("0.0.0.0:5", "[::]:9", "127.0.0.1:9", "[::ffff:127.0.0.1]:5"),
        ("[::]:5", "[::]:9", "[::1]:9", "[::1]:5"),
        ("0.0.0.0:5", "127.0.0.1:9", "0.0.0.0:9", "127.0.0.1:5"),
    ],
)
def test_datagrams_by_their_addresses(own: str, far: str, sent_to: str, seen_from: str) -> None:
    world, wire = World(2), Wire(is_datagram=True)
    one, other = world.processes
    one.send(wire, one.open("udp", own), b"x", address=sent_to)
    other.receive(wire, other.open("udp", far), address=seen_from)

    assert channels(world) == [("udp", f"{own} -> {far}", (1,), (2,))]
    assert len(matched(world)[0].segments) == 1


def test_a_socket_of_the_address_itself_is_preferred_to_a_wildcard() -> None:
    world, wire = World(2), Wire(is_datagram=True)
    one, other = world.processes
    other.open("udp", "0.0.0.0:9")
    one.send(wire, one.open("udp", "127.0.0.1:5"), b"x", address="127.0.0.1:9")
    other.receive(wire, other.open("udp", "127.0.0.1:9"), address="127.0.0.1:5")

    assert channels(world) == [("udp", "127.0.0.1:5 -> 127.0.0.1:9", (1,), (2,))]


def test_unix_datagrams_by_path_and_by_inode() -> None:
    world, wire = World(3), Wire(is_datagram=True)
    one, other, reader = world.processes
    end = reader.open("unix-datagram", "30", path="/run/log")
    one.send(wire, one.open("unix-datagram", "31"), b"one", address="/run/log")
    other.send(wire, other.open("unix-datagram", "32", "30"), b"other")
    reader.receive(wire, end)
    reader.receive(wire, end)

    assert channels(world) == [("unix-datagram", "/run/log", (1, 2), (3,))]
    assert [each.segments.certainty for each in matched(world)] == [bytearray(2)]


@given(st.data())
def test_datagrams_with_losses(data: st.DataObject) -> None:
    """Each receive has the right send, or is said to be ambiguous with the right one among those that fit."""
    world, wire = World(2), Wire(is_datagram=True)
    one, other = world.processes
    end, far = one.open("udp", "127.0.0.1:5"), other.open("udp", "0.0.0.0:9")
    for step in data.draw(st.lists(st.sampled_from(["send", "send", "lose", "receive"]), max_size=40)):
        if step == "receive" and wire.queue:
            other.receive(wire, far, address="127.0.0.1:5")
        elif step != "receive":
            payload = data.draw(st.sampled_from([b"", b"a", b"b"]))
            one.send(wire if step == "send" else Wire(is_datagram=True), end, payload, address="127.0.0.1:9")

    for found in matched(world):
        assert len(found.segments) == len(found.receives)
        for at in range(len(found.segments)):
            segment = found.segments[at]
            truth = world.truth[2, found.receives.place(segment.receive)[1]][0][1]
            fitting = found.candidates(at) if segment.certainty == AMBIGUOUS else (segment.send,)
            rows = [found.sends.place(each)[1] for each in fitting]
            assert truth in rows
            assert (len(rows) > 1) == (segment.certainty == AMBIGUOUS)


def test_datagrams_that_come_twice_or_overtake_others() -> None:
    world, wire = World(2), Wire(is_datagram=True)
    one, other = world.processes
    end, far = one.open("udp", "127.0.0.1:5"), other.open("udp", "127.0.0.1:9")
    for payload in (b"a", b"b"):
        one.send(wire, end, payload, address="127.0.0.1:9")
    wire.queue.reverse()
    wire.queue.append(wire.queue[0])
    for _ in range(3):
        other.receive(wire, far, address="127.0.0.1:5")

    (found,) = matched(world)

    assert list(found.segments.send) == [1, 0, 1]
    assert not any(found.segments.certainty)
    assert (found.lost, found.from_nowhere) == (0, 0)


def name_of(world: World, number: int) -> MessageChannel:
    return find_channels(world.members())[number - 1]


def test_the_numbers_of_channels_do_not_depend_on_the_order_of_endpoints() -> None:
    world, early, late = World(2), Wire(), Wire()
    one, other = world.processes
    second, first = one.open("pipe", "1:2", "1:2"), one.open("pipe", "1:1", "1:1")
    one.send(early, first, b"x")
    one.send(late, second, b"x")
    other.receive(late, other.open("pipe", "1:2", "1:2"))

    assert (name_of(world, 1).name, name_of(world, 2).name) == ("1:1", "1:2")


@pytest.mark.parametrize("senders", [1, 2])
def test_datagrams_of_calls_that_do_not_return_the_sender(senders: int) -> None:
    world, wire = World(3), Wire(is_datagram=True)
    *others, reader = world.processes
    end = reader.open("udp", "0.0.0.0:9")
    for process in others[:senders]:
        process.send(
            wire, process.open("udp", f"0.0.0.0:{process.number}"), b"%d" % process.number, address="127.0.0.1:9"
        )
        reader.receive(wire, end)

    (found,) = matched(world)

    name = "0.0.0.0:1 -> 0.0.0.0:9" if senders == 1 else "0.0.0.0:9"
    assert (found.channel.name, found.channel.senders) == (name, tuple(range(1, senders + 1)))
    assert list(found.segments.send) == list(range(senders))
    assert not any(found.segments.certainty)


@pytest.mark.parametrize("named", [False, True])
def test_unix_sockets_of_which_one_had_gone_when_the_other_was_accepted(named: bool) -> None:
    world = World(3)
    *clients, server = world.processes
    for client in clients:
        wire = Wire()
        client.send(wire, client.open("unix", f"1{client.number}", cookie=client.number), b"same")
        server.receive(wire, server.open("unix", f"2{client.number}", cookie=10 + client.number, path="/run/bank"))
    if named:
        for client, number in zip(clients, (1, 2), strict=True):
            client.endpoints[0] = client.endpoints[0]._replace(peer_path="/run/bank")
            server.endpoints[number - 1] = server.endpoints[number - 1]._replace(peer_pid=100 + client.number)
    members = [each._replace(pid=100 + each.process) for each in world.members()]

    found = [(each.senders, each.receivers, each.doubt) for each in find_channels(members)]

    if named:
        assert found == [((1,), (3,), ""), ((2,), (3,), "")]
    else:
        assert found == [((1,), (), ""), ((), (3,), ""), ((2,), (), ""), ((), (3,), "")]


@pytest.mark.parametrize("is_in_turn", [True, False])
def test_unix_sockets_of_one_process_that_had_gone_when_they_were_accepted(is_in_turn: bool) -> None:
    """A fork server is connected to for each child, with the same byte: only the time tells the connections apart."""
    world, wires = World(2), [Wire(), Wire()]
    client, server = world.processes
    done: list[object] = []

    def connect(number: int) -> None:
        client.send(wires[number], client.open("unix", f"1{number}", cookie=1 + number), b"x")

    def accept(number: int) -> None:
        end = server.open("unix", f"2{number}", cookie=10 + number, path="/run/forks")
        server.receive(wires[number], end)

    for call in (connect, accept, connect, accept) if is_in_turn else (connect, connect, accept, accept):
        call(sum(each is call for each in done))
        done.append(call)
    client.endpoints[:] = [each._replace(peer_path="/run/forks", peer_pid=1) for each in client.endpoints]
    server.endpoints[:] = [each._replace(peer_pid=101) for each in server.endpoints]
    members = [each._replace(pid=100 + each.process) for each in world.members()]

    found = find_channels(members)

    assert [(each.senders, each.receivers, each.doubt != "") for each in found] == [((1,), (2,), not is_in_turn)] * 2


@pytest.mark.parametrize(("data", "is_sure"), [(b"few", False), (b"as many as nobody else", True)])
def test_unix_sockets_that_know_nothing_of_each_other_are_paired_by_their_bytes(data: bytes, is_sure: bool) -> None:
    world, wire = World(2), Wire()
    one, other = world.processes
    one.send(wire, one.open("unix", "11"), data)
    other.receive(wire, other.open("unix", "12"))

    (found,) = matched(world)

    assert (found.channel.senders, found.channel.receivers) == ((1,), (2,))
    assert (found.channel.doubt == "") == is_sure


def test_many_uses_of_a_port_that_are_read_late() -> None:
    world = World(2)
    one, other = world.processes
    wires = [Wire() for _ in range(40)]
    for number, wire in enumerate(wires):
        one.send(wire, one.open("tcp", "127.0.0.1:5", "127.0.0.1:80", cookie=1 + number), b"use %02d" % number)
    for number, wire in enumerate(wires):
        other.receive(wire, other.open("tcp", "127.0.0.1:80", "127.0.0.1:5", cookie=100 + number))

    assert all(each.channel.doubt == "" and len(each.segments) == 1 for each in matched(world))
