"""Channels that several processes write or read at once: what is known of the order, and what is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.distributed.matching.bounds import GroupBounds
from replaydbg.distributed.matching.chains import chains_of_receives, chains_of_sends
from replaydbg.distributed.matching.matching import GroupMatching
from replaydbg.distributed.matching.segments import AMBIGUOUS, SURE, UNSURE
from tests.distributed.model import Process, Wire, World
from tests.distributed.test_matching import check, matched


def a_world(processes: int) -> tuple[World, Wire, list[tuple[Process, int]]]:
    """Return processes that have both ends of one pipe."""
    world = World(processes)
    return world, Wire(), [(each, each.open("pipe", "1:2", "1:2")) for each in world.processes]


def read_message(reader: Process, end: int, wire: Wire, head: int, body: int) -> None:
    """Read as a multiprocessing queue does: the length, then the rest."""
    reader.receive(wire, end, head)
    reader.receive(wire, end, body)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(2, 4)), min_size=1, max_size=20))
def test_messages_with_equal_beginnings_are_told_apart_by_their_rest(turns: list[tuple[int, int]]) -> None:
    world, wire, ends = a_world(5)
    for number, (writer, _) in enumerate(turns):
        process, end = ends[writer]
        process.send(wire, end, b"head%04d" % number)
    for _, reader in turns:
        read_message(*ends[reader], wire, 4, 4)

    (found,) = matched(world)

    check(found, world)
    assert not any(found.segments.certainty)


@given(st.lists(st.integers(2, 4), min_size=2, max_size=8), st.integers(2, 5))
def test_equal_messages_are_ambiguous_if_several_processes_read(readers: list[int], chunks: int) -> None:
    world, wire, ends = a_world(5)
    for _ in readers:
        ends[0][0].send(wire, ends[0][1], b"stop")
    for reader in readers:
        read_message(*ends[reader], wire, chunks - 1, 5 - chunks)

    (found,) = matched(world)

    check(found, world)
    # The last of them began to wait before another one had received something: who was first is not known.
    assert any(found.segments.certainty) == (len(set(readers)) > 1)


def test_an_order_other_than_that_of_the_tickets_is_found() -> None:
    """The first writer takes its ticket, and is preempted before its bytes are written."""
    world, wire, ends = a_world(3)
    (late, end), (other, far), reader = ends
    late.begin(wire, end, b"late!")
    other.send(wire, far, b"other")
    late.finish()
    reader[0].receive(wire, reader[1], 5)
    reader[0].receive(wire, reader[1], 5)

    (found,) = matched(world)

    check(found, world)
    assert not any(found.segments.certainty)
    assert [found.sends.members[found.sends.place(each)[0]].process for each in found.segments.send] == [2, 1]


def test_a_send_that_had_ended_before_another_began_is_known_to_be_first() -> None:
    world, wire, ends = a_world(3)
    (one, end), (other, far), _ = ends
    one.send(wire, end, b"x")
    one.send(wire, end, b"x")
    other.send(wire, far, b"x")
    members = world.members()
    (channel,) = GroupMatching(members).channels
    found = GroupMatching(members).match(channel).sends

    chains = chains_of_sends(found, GroupBounds(members))

    assert [list(each) for each in chains.chains] == [[0, 1], [2]]
    # The first send of one process had ended when it took the ticket of its second; when the second ended is not known.
    assert chains.available([0, 0]) == [0]
    assert chains.available([1, 0]) == [1, 2]


def test_a_receive_that_began_after_another_had_ended_is_known_to_be_second() -> None:
    world, wire, ends = a_world(3)
    (one, end), (reader, far), (other, third) = ends
    for _ in range(3):
        one.send(wire, end, b"x")
    reader.receive(wire, far, 1)
    other.send(Wire(), other.open("pipe", "9:9", "9:9"), b"anything")
    other.receive(wire, third, 1)
    members = world.members()
    group = GroupMatching(members)
    found = group.match(next(each for each in group.channels if each.own == "1:2")).receives

    chains = chains_of_receives(found, GroupBounds(members))

    assert chains.available([0, 0]) == [0]


def test_bytes_that_differ_make_the_rest_unsure() -> None:
    world, wire, ends = a_world(2)
    (one, end), (other, far) = ends
    for data in (b"first", b"second", b"third"):
        one.send(wire, end, data)
        if data == b"second":
            wire.take(3)  # by a process that is not recorded
            wire.put(9, 0, b"abc")
        other.receive(wire, far, 6)

    (found,) = matched(world)

    assert found.contradiction is not None
    assert tuple(found.contradiction) == (1, 1, 5, 11)
    assert list(found.segments.certainty) == [SURE, UNSURE, UNSURE]


def test_no_order_makes_both_sides_of_a_crowded_channel_agree() -> None:
    world, wire, ends = a_world(3)
    for process, end in ends[:2]:
        process.send(wire, end, b"from %d" % process.number)
    wire.take(12)
    wire.put(9, 0, b"something!!!")
    for _ in range(2):
        ends[2][0].receive(wire, ends[2][1], 6)

    (found,) = matched(world)

    assert found.contradiction is not None
    assert set(found.segments.certainty) == {UNSURE}


def test_what_an_open_send_has_made_is_received() -> None:
    """A process was killed in a send of which a part was received."""
    world, wire, ends = a_world(2)
    (one, end), (other, far) = ends
    one.send(wire, end, b"whole")
    one.begin(wire, end, b"never ends")
    assert one.call is not None
    one.call.step()
    other.receive(wire, far, 8)

    (found,) = matched(world)

    check(found, world)
    assert list(found.segments.certainty) == [SURE, SURE]
    assert found.sends.place(found.segments.send[1]) == (0, 1)
    assert (found.lost, found.from_nowhere) == (0, 0)


def test_several_open_sends_are_ambiguous() -> None:
    world, wire, ends = a_world(3)
    for process, end in ends[:2]:
        process.begin(wire, end, b"never ends")
        assert process.call is not None
        process.call.step()
    ends[2][0].receive(wire, ends[2][1], 8)

    (found,) = matched(world)

    assert list(found.segments.certainty) == [AMBIGUOUS]
    assert {found.sends.place(each) for each in found.candidates(0)} == {(0, 0), (1, 0)}


def test_equal_pieces_of_different_messages_are_ambiguous() -> None:
    world, wire, ends = a_world(4)
    for data in (b"==one", b"==two"):
        ends[0][0].send(wire, ends[0][1], data)
    for reader, size in ((1, 2), (2, 3), (3, 2), (2, 3)):
        ends[reader][0].receive(wire, ends[reader][1], size)

    (found,) = matched(world)

    check(found, world)
    assert list(found.segments.certainty) == [AMBIGUOUS, SURE, AMBIGUOUS, SURE]


def test_pieces_across_messages_by_several_readers_are_ambiguous() -> None:
    """No digest confirms where the first message ends: any order of the pieces is possible."""
    world, wire, ends = a_world(3)
    for data in (b"one", b"other"):
        ends[0][0].send(wire, ends[0][1], data)
    for reader, size in ((1, 5), (2, 3)):
        ends[reader][0].receive(wire, ends[reader][1], size)

    (found,) = matched(world)

    check(found, world)
    assert set(found.segments.certainty) == {AMBIGUOUS}


def test_what_a_parent_did_before_a_fork_is_before_all_of_the_child() -> None:
    world, wire, ends = a_world(3)
    (parent, end), (child, far), (reader, third) = ends
    parent.send(wire, end, b"x")
    child.send(wire, far, b"x")
    child.send(wire, far, b"x")
    for _ in range(3):
        reader.receive(wire, third, 1)
    members = world.members()
    for branch in (0, 1):
        members[1] = members[1]._replace(branch=branch, parent=1 if branch else 0)
        group = GroupMatching(members)
        found = group.match(group.channels[0])

        # Without the fork it is not known when the first send had ended.
        assert any(found.segments.certainty) == (not branch)


@pytest.mark.parametrize("readers", [1, 2])
@given(data=st.data())
def test_the_bytes_that_were_received_give_the_order_of_all_sends(readers: int, data: st.DataObject) -> None:
    """However long the processes are preempted between their tickets and their bytes."""
    world, wire, ends = a_world(4 + readers)
    writers, others = ends[:4], ends[4:]
    texts = [[b"%d writes %d," % (process.number, number) for number in range(12)] for process, _ in writers]
    for choice in data.draw(st.lists(st.integers(0, 3 + readers), min_size=60, max_size=150)):
        process, end = ends[choice]
        if process.call is None and choice > 3:
            process.begin(wire, end, 40)
        elif process.call is None and texts[choice]:
            process.begin(wire, end, texts[choice].pop(0))
        process.step()
    for process in world.processes:
        process.finish()
    while wire.queue:
        others[0][0].receive(wire, others[0][1], 40)

    for found in matched(world, world.contents):
        check(found, world)
        assert readers > 1 or not any(found.segments.certainty)
