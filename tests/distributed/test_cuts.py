"""The latest consistent cut: consistent, maximal, the same again, monotone; and the state of channels in it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from replaydbg.distributed.causal_order import CausalOrder
from replaydbg.distributed.channel_states import ChannelHistory
from replaydbg.distributed.cuts import CutFinder, Requirement, finder_of
from replaydbg.distributed.edges import HappensBefore
from replaydbg.distributed.matching.matching import GroupMatching
from tests.distributed.model import Wire, World
from tests.distributed.test_causal_order import message, runs

Run = tuple[dict[int, int], list[HappensBefore]]


def finder(run: Run) -> CutFinder:
    events, edges = run
    return CutFinder(events, [Requirement(e.process, e.to_process, (e.event,), (e.to_event,)) for e in edges])


def is_consistent(run: Run, cut: dict[int, int]) -> bool:
    """The definition, without a table."""
    return all(cut[e.to_process] < e.to_event or cut[e.process] >= e.event for e in run[1])


def all_cuts(run: Run) -> Iterator[dict[int, int]]:
    for positions in itertools.product(*(range(count + 1) for count in run[0].values())):
        yield dict(zip(run[0], positions, strict=True))


def wanted_of(draw_from: st.DataObject, run: Run) -> dict[int, int]:
    return {process: draw_from.draw(st.integers(0, count)) for process, count in run[0].items()}


small = runs().filter(lambda run: len(run[0]) < 4 and max(run[0].values()) < 8)


@given(small, st.data())
def test_the_latest_cut_is_the_greatest_of_all_consistent_ones(run: Run, data: st.DataObject) -> None:
    cuts, wanted = finder(run), wanted_of(data, run)

    found = cuts.latest(wanted)

    below = [each for each in all_cuts(run) if is_consistent(run, each) and all(each[p] <= wanted[p] for p in wanted)]
    assert found in below
    assert all(each[p] <= found[p] for each in below for p in found)


@given(runs(), st.data())
def test_laws(run: Run, data: st.DataObject) -> None:
    cuts, wanted = finder(run), wanted_of(data, run)
    found = cuts.latest(wanted)

    assert is_consistent(run, found)
    assert cuts.is_consistent(found)
    assert cuts.latest(found) == found
    later = {process: data.draw(st.integers(at, run[0][process])) for process, at in wanted.items()}
    after = cuts.latest(later)
    assert all(found[p] <= after[p] for p in found)
    for choose in (min, max):
        assert cuts.is_consistent({p: choose(found[p], after[p]) for p in found})


@given(runs(), st.data())
def test_clocks_agree(run: Run, data: st.DataObject) -> None:
    """Where each send is an event of its own, a cut is one look at the clocks."""
    events, edges = run
    edges = [each for each in edges if each.kind == "end" or each.event <= events[each.process]]
    sends = {(each.process, each.event) for each in edges if each.kind == "message"}
    edges = [each for each in edges if (each.to_process, each.to_event) not in sends]
    wanted = wanted_of(data, run)
    order = CausalOrder(edges)

    found = finder((events, edges)).latest(wanted)

    for process, count in events.items():
        fitting = (
            each
            for each in range(min(wanted[process], count), 0, -1)
            if all(value <= wanted[other] for other, value in order.clock(process, each).items())
        )
        assert found[process] == next(fitting, 0)


@given(runs(), st.data())
def test_positions_can_be_restricted(run: Run, data: st.DataObject) -> None:
    cuts, wanted = finder(run), wanted_of(data, run)
    allowed = {p: sorted(data.draw(st.sets(st.integers(1, count)))) if count else [] for p, count in run[0].items()}

    found = cuts.latest(wanted, allowed)

    assert cuts.is_consistent(found)
    assert all(at == 0 or at in allowed[process] for process, at in found.items())
    assert cuts.latest(found, allowed) == found


def test_a_child_that_was_not_forked_yet_is_at_the_beginning() -> None:
    start = Requirement(1, 2, (5,), (5,))
    cuts = CutFinder({1: 9, 2: 8}, [start], {2: 5})

    assert cuts.latest({1: 4}) == {1: 4, 2: 0}
    assert cuts.latest({1: 5}) == {1: 5, 2: 8}
    assert cuts.latest({2: 4}) == {1: 9, 2: 0}
    assert cuts.latest({}) == {1: 9, 2: 8}


def test_a_send_of_another_thread_counts_from_the_first_event_after_its_begin() -> None:
    """Positions are whole events: with what was received of an unfinished send comes the event that ended next."""
    run = {1: 3, 2: 3}, [message(1, 1, 2, 2)]

    assert finder(run).latest({1: 1}) == {1: 1, 2: 1}
    assert finder(run).latest({1: 2}) == {1: 2, 2: 3}


# ---- channels ----


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Return processes that send to each other through pipes, each with one writer and one reader."""
    world = World(draw(st.integers(2, 3)))
    channels = []
    for number in range(draw(st.integers(1, 3))):
        writer, reader = draw(st.permutations(world.processes))[:2]
        name = f"1:{number}"
        channels.append((Wire(), writer, writer.open("pipe", name, name), reader, reader.open("pipe", name, name)))
    for _ in range(draw(st.integers(0, 40))):
        wire, writer, end, reader, other = draw(st.sampled_from(channels))
        if draw(st.booleans()):
            if writer.call is None:
                writer.begin(wire, end, bytes(draw(st.integers(1, 5))))
        elif reader.call is None:
            reader.begin(wire, other, draw(st.integers(1, 6)))
        for process in draw(st.lists(st.sampled_from(world.processes), max_size=6)):
            process.step()
    return world


@given(worlds(), st.data())
def test_channel_states_are_what_was_sent_and_not_received(world: World, data: st.DataObject) -> None:
    group = GroupMatching(world.members(), world.contents)
    cuts = finder_of(group)
    wanted = {each.number: data.draw(st.integers(0, each.events + 1)) for each in world.processes}

    cut = cuts.latest(wanted)

    calls = {each.number: each.transfers for each in world.processes}
    for channel in group.channels:
        history = ChannelHistory(group.match(channel))
        found: dict[tuple[int, int], int] = {}
        for part in history.in_flight(cut):
            index, row = history.found.sends.place(part.send)
            process = history.found.sends.members[index].process
            found[process, row] = found.get((process, row), 0) + part.length
        expected = {}
        for member in channel.sends:
            process = world.processes[member.member].number
            for row in member.rows:
                call = calls[process][row]
                taken = sum(
                    count
                    for (receiver, other), parts in world.truth.items()
                    for sender, sent, count in parts
                    if (sender, sent) == (process, row) and 0 < calls[receiver][other].event <= cut[receiver]
                )
                assert call.begun < cut[process] or not taken
                if call.begun < cut[process] and call.event and call.length > taken:
                    expected[process, row] = call.length - taken
        assert {key: value for key, value in found.items() if calls[key[0]][key[1]].event} == expected
