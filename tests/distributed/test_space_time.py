"""The layout of a space-time diagram: time goes forward in it, and the line of a cut divides it as the cut does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.distributed import message_arrows
from replaydbg.distributed.channel_states import ChannelHistory
from replaydbg.distributed.cuts import finder_of
from replaydbg.distributed.matching.matching import GroupMatching
from replaydbg.distributed.message_arrows import ArrowOfMessage, MessageArrows
from replaydbg.distributed.space_time import DiagramArrow, DiagramEvent, EventKind, Layout, lay_out
from tests.distributed.model import World
from tests.distributed.test_cuts import worlds

ALL = 1 << 20


def drawn(world: World, wanted: dict[int, int], most: int) -> tuple[Layout, list[ArrowOfMessage], MessageArrows]:
    """Return the diagram of a cut, with `most` events of each process on both sides."""
    group = GroupMatching(world.members(), world.contents)
    cut = finder_of(group).latest(wanted)
    table = MessageArrows([ChannelHistory(group.match(each)) for each in group.channels], {})
    arrows = [*table.near(cut, most).messages, *table.in_flight(cut, ALL).messages]
    return lay_out(cut, [each.arrow for each in arrows], cut), arrows, table


def wanted_of(data: st.DataObject, world: World) -> dict[int, int]:
    return {each.number: data.draw(st.integers(0, each.events + 1)) for each in world.processes}


@given(worlds(), st.data(), st.sampled_from((1, 2, ALL)))
def test_time_goes_forward(world: World, data: st.DataObject, most: int) -> None:
    layout, _, _ = drawn(world, wanted_of(data, world), most)

    for process in layout.processes:
        positions = [each.position for each in layout.events if each.process == process]
        assert positions == sorted(positions)
    assert len(set(layout.events)) == len(layout.events)
    for placed in layout.arrows:
        assert placed is not None
        assert placed.target is None or placed.source < placed.target


@given(worlds(), st.data(), st.sampled_from((1, 2, ALL)))
def test_a_message_crosses_the_line_exactly_if_it_is_in_flight(world: World, data: st.DataObject, most: int) -> None:
    group = GroupMatching(world.members(), world.contents)
    wanted = wanted_of(data, world)
    cut = finder_of(group).latest(wanted)
    expected = sum(
        part.length
        for channel in group.channels
        if channel.receivers
        for part in ChannelHistory(group.match(channel)).in_flight(cut)
    )

    layout, arrows, _ = drawn(world, wanted, most)

    for at, event in enumerate(layout.events):
        assert (at < layout.line) == (event.position <= cut[event.process])
    crossing = [
        each for each, placed in zip(arrows, layout.arrows, strict=True) if placed and placed.crosses(layout.line)
    ]
    assert sum(each.length for each in crossing) == expected
    assert all(placed is None or placed.source < layout.line or placed.target for placed in layout.arrows)


@given(worlds(), st.data())
def test_each_side_is_in_the_order_of_the_clock(world: World, data: st.DataObject) -> None:
    """Tickets rise along lanes and arrows if each process makes one call at a time: nothing has to be moved."""
    layout, _, _ = drawn(world, wanted_of(data, world), ALL)

    for side in (layout.events[: layout.line], layout.events[layout.line :]):
        assert [each.ticket for each in side] == sorted(each.ticket for each in side)


@given(worlds(), st.data())
def test_a_window_has_the_events_nearest_to_the_cut(world: World, data: st.DataObject) -> None:
    cut = wanted_of(data, world)
    group = GroupMatching(world.members(), world.contents)
    table = MessageArrows([ChannelHistory(group.match(each)) for each in group.channels], {})

    everything, window = table.near(cut, ALL), table.near(cut, 2)

    assert set(everything.earlier.values()) | set(everything.later.values()) == {0}
    assert {each.arrow for each in window.messages} <= {each.arrow for each in everything.messages}
    for process, position in cut.items():
        seen = []
        at: int | None = 0
        while at is not None:
            at = table.neighbour(process, at, is_later=True)
            seen += [at] if at is not None else []
        assert sum(each <= position for each in seen) <= window.earlier[process] + 2
        assert seen == sorted(set(seen))
        assert [table.neighbour(process, each, is_later=False) for each in seen] == [None, *seen[:-1]][: len(seen)]


@given(worlds(), st.data())
def test_a_table_without_room_has_the_first_arrows(world: World, data: st.DataObject) -> None:
    cut = wanted_of(data, world)
    group = GroupMatching(world.members(), world.contents)
    histories = [ChannelHistory(group.match(each)) for each in group.channels]
    everything = MessageArrows(histories, {}).near(cut, ALL).messages

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_arrows, "MOST_ARROWS", 2)
        table = MessageArrows(histories, {})

    # Those that cross the cut are not near it, but in flight.
    assert {each.arrow for each in table.near(cut, ALL).messages} <= {each.arrow for each in everything}
    assert table.is_complete or len(table.near(cut, ALL).messages) <= 2
    assert not table.is_complete or table.near(cut, ALL).messages == everything


def event(process: int, position: int, ticket: int, kind: EventKind = EventKind.SEND) -> DiagramEvent:
    return DiagramEvent(process, position, ticket, kind)


def test_an_arrow_that_goes_back_in_time_has_no_place() -> None:
    """Two messages that each were received before the other one was sent, as in no run."""
    one = DiagramArrow(event(1, 2, 5), event(2, 1, 6, EventKind.RECEIVE))
    other = DiagramArrow(event(2, 2, 7), event(1, 1, 8, EventKind.RECEIVE))

    layout = lay_out((1, 2), [one, other], {1: 9, 2: 9})

    assert len(layout.events) == 4
    assert sorted(each is None for each in layout.arrows) == [False, True]


def test_the_order_of_what_is_not_drawn_counts() -> None:
    """One process waits for the end of another one."""
    ends = [event(1, 9, 0, EventKind.END), event(2, 5, 0, EventKind.END)]
    message = DiagramArrow(event(1, 3, 10), event(2, 4, 11, EventKind.RECEIVE))

    layout = lay_out((1, 2), [message], {1: 0, 2: 0}, ends, [DiagramArrow(ends[1], ends[0])])

    assert layout.events == (message.source, message.target, ends[1], ends[0])


def test_begin_and_end_are_the_ends_of_a_lane() -> None:
    ends = [event(2, 4, 0, EventKind.BEGIN), event(2, 4, 0, EventKind.END)]
    arrow = DiagramArrow(event(1, 3, 0), ends[0])
    message = DiagramArrow(event(2, 4, 7), event(1, 4, 9, EventKind.RECEIVE))

    layout = lay_out((2, 1), [message, arrow], {1: 3, 2: 0}, ends)

    assert layout.processes == (1, 2)
    assert layout.events == (arrow.source, ends[0], message.source, ends[1], message.target)
    assert layout.line == 1


@given(worlds(), st.data())
def test_of_many_messages_in_flight_the_last_ones_are_drawn(world: World, data: st.DataObject) -> None:
    group = GroupMatching(world.members(), world.contents)
    cut = finder_of(group).latest(wanted_of(data, world))
    histories = [ChannelHistory(group.match(each)) for each in group.channels]
    table = MessageArrows(histories, {})

    everything, some = table.in_flight(cut, ALL), table.in_flight(cut, 2)

    assert some.messages == everything.messages[-2:]
    assert some.total == everything.total == len(everything.messages)
    assert some.states == everything.states
    assert sum(length for _, length in some.states.values()) == sum(each.length for each in everything.messages)
