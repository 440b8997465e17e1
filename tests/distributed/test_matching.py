"""Matching agrees with a model that knows which receive took which bytes, and says where it cannot know."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.distributed.matching.content_order import Contents, no_contents
from replaydbg.distributed.matching.matching import GroupMatching, Matched
from replaydbg.distributed.matching.segments import AMBIGUOUS, SURE
from tests.distributed.model import Process, Wire, World

pytestmark = pytest.mark.slow

DATA = st.binary(min_size=1, max_size=5).map(lambda data: bytes(each % 2 for each in data))
"""Few different bytes: many sends are equal."""


def matched(world: World, contents: Contents = no_contents) -> list[Matched]:
    group = GroupMatching(world.members(), contents)
    return [group.match(each) for each in group.channels]


def check(found: Matched, world: World, *, is_whole: bool = True) -> None:
    """Check each segment against the truth; `is_whole`: all that was received is matched."""
    assert found.contradiction is None
    assert found.early is None
    numbers = [each.process for each in found.sends.members]
    taken: dict[int, Counter[tuple[int, int]]] = {}
    doubtful: set[int] = set()
    for at in range(len(found.segments)):
        segment = found.segments[at]
        member, row = found.receives.place(segment.receive)
        truth = {(process, sent) for process, sent, _ in world.truth[numbers[member], row]}
        fitting = found.candidates(at) if segment.certainty == AMBIGUOUS else (segment.send,)
        places = {(numbers[each], place) for each, place in map(found.sends.place, fitting)}
        if segment.certainty == SURE:
            assert places <= truth
            taken.setdefault(segment.receive, Counter())[next(iter(places))] += segment.length
        else:
            assert segment.certainty == AMBIGUOUS
            assert len(places) > 1 or len(world.processes) > 2
            assert places & truth
            doubtful.add(segment.receive)
    for receive, counts in taken.items():
        member, row = found.receives.place(receive)
        lengths = Counter[tuple[int, int]]()
        for process, sent, length in world.truth[numbers[member], row]:
            lengths[process, sent] += length
        assert receive in doubtful or counts == lengths
    if is_whole:
        assert {*taken, *doubtful} == set(range(len(found.receives)))


def run(
    world: World,
    data: st.DataObject,
    wire: Wire,
    writers: list[tuple[Process, int, list[bytes]]],
    readers: list[tuple[Process, int]],
    sizes: list[list[int]],
) -> None:
    """Let all go on in any order. A reader receives at most as many bytes as its next number in `sizes`."""
    for choice in data.draw(st.lists(st.integers(0, len(writers) + len(readers) - 1), min_size=10, max_size=150)):
        if choice < len(writers):
            process, endpoint, messages = writers[choice]
            if process.call is None and messages:
                process.begin(wire, endpoint, messages.pop(0))
        else:
            process, endpoint = readers[choice - len(writers)]
            size = sizes[choice - len(writers)]
            if process.call is None and size:
                process.begin(wire, endpoint, size.pop(0))
        process.step()
    for process in world.processes:
        process.finish()


@given(st.data())
def test_one_writer_and_one_reader(data: st.DataObject) -> None:
    world, wire = World(2), Wire()
    (one, first), (other, second) = ends = [(each, each.open("pipe", "1:2", "1:2")) for each in world.processes]
    sends, sizes = data.draw(st.lists(DATA, max_size=20)), data.draw(st.lists(st.integers(1, 8), max_size=20))
    run(world, data, wire, [(one, first, sends)], [(other, second)], [sizes])

    for found in matched(world):
        check(found, world)
        assert not any(found.segments.certainty)
        assert found.lost == found.sent - found.received == sum(len(each) for *_, each in wire.queue)
    assert ends


@given(st.data())
def test_whole_messages_of_several_writers_and_readers(data: st.DataObject) -> None:
    writers, readers = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    world, wire = World(writers + readers), Wire()
    ends = [(process, process.open("pipe", "1:2", "1:2")) for process in world.processes]
    messages = st.binary(min_size=3, max_size=3).map(lambda data: bytes(each % 2 for each in data))
    senders = [(*end, data.draw(st.lists(messages, max_size=8))) for end in ends[:writers]]
    run(world, data, wire, senders, ends[writers:], [[3] * 20 for _ in range(readers)])

    for found in matched(world):
        check(found, world)


@given(st.data())
def test_several_writers_and_a_reader_that_takes_what_is_there(data: st.DataObject) -> None:
    writers = data.draw(st.integers(2, 3))
    world, wire = World(writers + 1), Wire()
    ends = [(process, process.open("pipe", "1:2", "1:2")) for process in world.processes]
    senders = [(*end, data.draw(st.lists(DATA, max_size=8))) for end in ends[:writers]]
    run(world, data, wire, senders, ends[writers:], [[100] * 20])

    for found in matched(world):
        check(found, world)
