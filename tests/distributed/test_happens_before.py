"""Births, ends, signals and semaphores order events of different processes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.distributed.happens_before import ProgramStart, edges_without_bytes
from replaydbg.distributed.matching.columns import Member
from replaydbg.events.transfers import Endpoint, Transfer
from tests.distributed.model import columns_of


def member(
    process: int, ends: Sequence[Endpoint] = (), transfers: Sequence[Transfer] = (), *, events: int = 99, **more: int
) -> Member:
    return Member(process, list(ends), columns_of(list(transfers)), events=events, **more)


def end(kind: str, own: str, peer: str = "", number: int = 1) -> Endpoint:
    return Endpoint(number, kind, own, peer, 0, "")


def move(way: str, event: int, ticket: int, *, endpoint: int = 1, begun: int | None = None) -> Transfer:
    begun = event - 1 if begun is None else begun
    return Transfer(event, begun, ticket, endpoint, way, 0, 0, "", False, False)


def edges(members: Sequence[Member], starts: Sequence[ProgramStart] = ()) -> list[tuple[object, ...]]:
    return [(each.kind, *each[:4], each.after, each.is_certain) for each in edges_without_bytes(members, starts)]


def test_a_fork_and_a_started_program() -> None:
    members = [member(1), member(2, branch=5, parent=1), member(3), member(4)]
    starts = [
        ProgramStart(2, 9, 3),
        ProgramStart(1, 30, 4, replaces=True),
        ProgramStart(7, 3, 3),
        ProgramStart(1, 0, 3),
    ]

    assert edges(members, starts) == [
        ("start", 1, 5, 2, 5, 4, True),
        ("start", 2, 9, 3, 1, 8, True),
        ("start", 1, 30, 4, 1, 30, True),
    ]


def test_the_first_wait_for_a_process_comes_after_its_last_event() -> None:
    ends = [end("process", "2"), end("process", "", number=2), end("process", "1", number=3)]
    waits = [
        move("receive", 0, 0, endpoint=2, begun=3),  # it had not ended
        move("receive", 6, 10),
        move("receive", 7, 11),  # the same once more
        move("receive", 8, 12, endpoint=3),  # itself: a forged recording
    ]

    assert edges([member(1, ends, waits), member(2, events=40)]) == [("end", 2, 40, 1, 6, 40, True)]


@pytest.mark.parametrize("events", [0, 4])
def test_a_child_that_was_killed_before_it_had_an_event_has_no_last_one(events: int) -> None:
    waits = [move("receive", 9, 10)]
    members = [member(1, [end("process", "2")], waits), member(2, events=events, branch=5, parent=1)]

    assert [edge[0] for edge in edges(members)] == ["start"]


def sender(*targets: str) -> Member:
    known = list(dict.fromkeys(targets))
    ends = [end("signal", target, number=number) for number, target in enumerate(known, 1)]
    sends = [
        move("send", event, 10 * event, endpoint=known.index(target) + 1) for event, target in enumerate(targets, 1)
    ]
    return member(1, ends, sends)


def handler(*events: int, own: str = "2:10", peer: str = "1") -> Member:
    return member(2, [end("signal", own, peer)], [move("receive", event, 10 * event + 5) for event in events])


@pytest.mark.parametrize(
    ("targets", "events", "expected"),
    [
        (("2:10",), (1,), [(1, 1)]),
        (("2:10", "2:10"), (1, 2), [(1, 1), (2, 2)]),
        (("2:10", "2:10", "2:10"), (3,), [(1, 3)]),  # three came as one: the first one was certainly needed
        (("2:10", "2:10", "2:10"), (1, 3), [(1, 1), (2, 3)]),
        (("3:10", "2:12", "2:10"), (5,), [(3, 5)]),
        (("-77:10", "2:10"), (1, 2), [(1, 1), (2, 2)]),
        (("2:10",), (1, 2), [(1, 1)]),  # C code sent another one
        (("3:10",), (1,), []),
        (("2:10", "2:10"), (1, 1), [(1, 1)]),  # the tickets do not allow the second one
    ],
)
def test_a_handler_comes_after_a_signal(
    targets: tuple[str, ...], events: tuple[int, ...], expected: list[tuple[int, int]]
) -> None:
    found = list(edges_without_bytes([sender(*targets), handler(*events)]))

    assert [(each.event, each.to_event) for each in found] == expected
    assert {(each.kind, each.signal, each.process, each.to_process) for each in found} <= {("signal", 10, 1, 2)}


@pytest.mark.parametrize("peer", ["", "2", "7", "x", "-1"])
def test_a_handler_whose_signal_came_from_elsewhere_is_ordered_by_nothing(peer: str) -> None:
    assert edges([sender("2:10"), handler(1, peer=peer)]) == []


@pytest.mark.parametrize(
    ("made_with", "way", "is_certain"),
    [("1", "lock", True), ("", "lock", False), ("5", "lock", False), ("0", "lock", False), ("0", "handed over", True)],
)
def test_an_acquisition_comes_after_the_release_before_it(made_with: str, way: str, is_certain: bool) -> None:
    own = end("semaphore", "/mp-1", made_with)
    if way == "lock":
        one, other = [move("receive", 1, 1), move("send", 2, 3)], [move("receive", 1, 4), move("send", 2, 5)]
    else:
        one, other = [move("send", 2, 3)], [move("receive", 1, 4)]
    other_end = end("semaphore", "/mp-1")  # it came out of a pickle

    assert edges([member(1, [own], one), member(2, [other_end], other)]) == [("semaphore", 1, 2, 2, 1, 1, is_certain)]


def test_several_at_once_are_not_certain_and_unnamed_semaphores_are_not_the_same() -> None:
    for own, expected in (("/mp-1", [False]), ("0x7f00", [])):
        ends = [end("semaphore", own, "1")]
        one = [move("receive", 1, 1), move("receive", 2, 2), move("send", 3, 3)]
        found = edges_without_bytes([member(1, ends, one), member(2, ends, [move("receive", 1, 4)])])
        assert [each.is_certain for each in found] == expected


def test_a_file_is_read_after_whoever_closed_it_last() -> None:
    file, other = end("file", "8:1"), end("file", "8:2", number=2)
    writer = member(1, [file], [move("send", 3, 5), move("receive", 6, 8)])
    reader = member(2, [file, other], [move("receive", 1, 4), move("receive", 2, 6), move("receive", 4, 7, endpoint=2)])

    assert edges([writer, reader]) == [("file", 1, 3, 2, 2, 2, False)]


@given(st.data())
def test_a_signal_that_was_certainly_sent_before_was(data: st.DataObject) -> None:
    """A model of signals: those pending at the same time become one, and a handler runs later, for the last sender."""
    sends: dict[int, list[Transfer]] = {1: [], 2: []}
    handled: list[tuple[int, Transfer]] = []
    causes: list[list[tuple[int, int]]] = []
    pending: list[tuple[int, int]] = []
    events = 0
    for ticket, step in enumerate(data.draw(st.lists(st.sampled_from([1, 2, 0]), max_size=30)), 1):
        if step:
            event = len(sends[step]) + 1
            sends[step].append(move("send", event, ticket))
            pending.append((step, event))
        elif pending:
            events += 1
            handled.append((pending[-1][0], move("receive", events, ticket, endpoint=pending[-1][0])))
            causes.append(pending)
            pending = []
    target = end("signal", "3:10")
    receives = [end("signal", "3:10", "1"), end("signal", "3:10", "2", number=2)]
    members = [member(number, [target], sends[number]) for number in (1, 2)]

    found = list(edges_without_bytes([*members, member(3, receives, [each for _, each in handled])]))

    assert len(found) == len(handled)
    for edge in found:
        taken = [event for process, event in causes[edge.to_event - 1] if process == edge.process]
        assert taken[0] >= edge.event  # that one, or a later one, was among those that it ran for
