"""Vector clocks agree with reachability in the graph of all begins and ends of events."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from replaydbg.distributed.causal_order import AFTER, BEFORE, CONCURRENT, SAME, CausalOrder
from replaydbg.distributed.edges import HappensBefore


def message(process: int, begun: int, to_process: int, to_event: int) -> HappensBefore:
    return HappensBefore(process, begun + 1, to_process, to_event, True, "message", begun)


def ended(process: int, events: int, to_process: int, to_event: int) -> HappensBefore:
    return HappensBefore(process, events, to_process, to_event, True, "end", events)


def test_a_fork_a_wait_and_a_message() -> None:
    order = CausalOrder(
        [
            HappensBefore(1, 5, 2, 5, True, "start", 4),
            message(2, 7, 3, 2),
            ended(2, 9, 1, 12),
        ],
        {2: (1, 5)},
    )

    assert order.order((1, 4), (2, 6)) == BEFORE
    assert order.order((1, 5), (2, 5)) == BEFORE
    assert order.order((2, 4), (1, 4)) == SAME  # the child's first events are its parent's
    assert order.order((2, 4), (1, 7)) == BEFORE
    assert order.order((1, 7), (2, 6)) == CONCURRENT
    assert order.order((3, 2), (2, 8)) == AFTER
    assert order.order((3, 1), (2, 8)) == CONCURRENT
    assert order.order((2, 9), (1, 12)) == BEFORE
    assert order.order((2, 9), (1, 11)) == CONCURRENT
    assert order.order((1, 3), (3, 2)) == BEFORE
    assert order.clock(3, 2) == {1: 5, 2: 8}
    assert order.clock(1, 11) == {}
    assert order.unordered == []


def test_what_a_call_that_goes_on_receives_is_not_passed_on_by_it() -> None:
    """A send of another thread began before the receive ended: what it sends does not come after what was received."""
    order = CausalOrder([message(1, 0, 2, 3), message(2, 2, 3, 1)])

    assert order.order((1, 1), (3, 1)) == CONCURRENT
    assert order.order((2, 2), (3, 1)) == BEFORE


def test_edges_that_contradict_each_other_are_reported() -> None:
    circle = [message(1, 5, 2, 5), message(2, 5, 1, 5)]

    order = CausalOrder([message(3, 0, 1, 2), *circle])

    assert order.unordered == circle[::-1]
    assert order.order((3, 1), (1, 2)) == BEFORE


@st.composite
def runs(draw: st.DrawFn) -> tuple[dict[int, int], list[HappensBefore]]:
    """Return processes with their numbers of events, and edges as a run can make them."""
    events = dict.fromkeys(range(1, draw(st.integers(2, 4)) + 1), 0)
    under_way: list[tuple[int, int]] = []
    edges = []
    gone: set[int] = set()
    for _ in range(draw(st.integers(0, 40))):
        process = draw(st.sampled_from(sorted(events)))
        if process in gone:
            continue
        action = draw(st.sampled_from(["send", "receive", "compute", "end"]))
        if action == "send":
            under_way.append((process, events[process]))
        if action == "receive" and under_way:
            source, begun = draw(st.sampled_from(under_way))
            if source != process:
                edges.append(message(source, begun, process, events[process] + 1))
        if action == "end" and len(gone) + 1 < len(events) and events[process]:
            gone.add(process)
            other = draw(st.sampled_from(sorted(events.keys() - gone)))
            edges.append(ended(process, events[process], other, events[other] + 1))
            events[other] += 1
            continue
        events[process] += 1
    return events, edges


def reached(events: dict[int, int], edges: list[HappensBefore], process: int, event: int) -> dict[int, int]:
    """Return for each other process the first event whose end comes after the begin of an event."""
    following: dict[tuple[int, int, str], list[tuple[int, int, str]]] = defaultdict(list)
    for number, count in events.items():
        for each in range(1, count + 1):
            following[number, each, "begin"].append((number, each, "end"))
            following[number, each, "end"].append((number, each + 1, "begin"))
    for edge in edges:
        side = "end" if edge.kind == "end" else "begin"
        following[edge.process, edge.event, side].append((edge.to_process, edge.to_event, "end"))
    found: dict[int, int] = {}
    todo, seen = [(process, event, "begin")], set()
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if node[2] == "end":
            found[node[0]] = min(found.get(node[0], node[1]), node[1])
        todo += following[node]
    return found


@given(runs())
def test_clocks_agree_with_reachability(run: tuple[dict[int, int], list[HappensBefore]]) -> None:
    events, edges = run

    order = CausalOrder(edges)

    assert order.unordered == []
    for process, count in events.items():
        for event in range(1, count + 1):
            first = reached(events, edges, process, event)
            for other, last in events.items():
                for each in range(1, last + 1):
                    if other != process:
                        is_before = each >= first.get(other, 1 << 62)
                        assert (order.order((process, event), (other, each)) == BEFORE) == is_before
                        assert (order.order((other, each), (process, event)) == AFTER) == is_before
                        assert (order.clock(other, each).get(process, 0) >= event) == is_before


@given(
    st.lists(
        st.builds(message, st.integers(1, 3), st.integers(0, 5), st.integers(1, 3), st.integers(1, 6)), max_size=20
    )
)
def test_any_edges_are_followed_or_reported(edges: list[HappensBefore]) -> None:
    order = CausalOrder(edges, {3: (2, 4), 2: (3, 1)})

    assert all(edge in edges for edge in order.unordered)
    for one in range(1, 4):
        for other in range(1, 4):
            order.order((one, 3), (other, 3))
