"""Who can go on in a wait-for graph, against a search over all ways in which the nodes can act."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from replaydbg.distributed.wait_graph import cores, stuck

NODES = range(6)
GRAPHS = st.dictionaries(
    st.sampled_from(NODES), st.lists(st.sets(st.sampled_from(NODES), max_size=3), max_size=3), max_size=6
)


@given(GRAPHS)
def test_those_are_stuck_that_no_order_of_acts_lets_go_on(graph: dict[int, list[set[int]]]) -> None:
    able = {node for node in NODES if node not in graph}
    for _ in NODES:  # each round lets at least one more go on, or none ever
        able |= {node for node, alternatives in graph.items() if any(each <= able for each in alternatives)}

    assert stuck(graph) == set(graph) - able


@given(GRAPHS)
def test_more_alternatives_never_stop_anybody(graph: dict[int, list[set[int]]]) -> None:
    more = {node: [*alternatives, {0}] for node, alternatives in graph.items()}

    assert stuck(more) <= stuck(graph)


@given(GRAPHS)
def test_a_core_waits_for_itself_alone_and_all_others_that_wait_lead_to_one(graph: dict[int, list[set[int]]]) -> None:
    nodes = stuck(graph)
    following = {node: {other for each in graph[node] for other in each if other in nodes} for node in nodes}

    found = cores(graph, nodes)

    for core in found:
        assert all(following[node] <= core for node in core)
    reached = set().union(*found)
    # Whoever waits for nobody at all is stuck alone, and in no cycle.
    reached |= {node for node in nodes if not following[node]}
    for _ in nodes:
        reached |= {node for node in nodes if following[node] & reached}
    assert reached == nodes


def test_an_and_wait_needs_all_and_an_or_wait_one() -> None:
    assert stuck({"a": [{"b", "c"}], "c": [{"a"}]}) == {"a", "c"}  # b acts, c does not
    assert stuck({"a": [{"b"}, {"c"}], "c": [{"a"}]}) == set()


def test_a_cycle_is_found_apart_from_those_that_wait_for_it() -> None:
    graph = {"a": [{"b"}], "b": [{"a"}], "c": [{"a"}], "d": [{"d"}]}

    assert cores(graph, stuck(graph)) == [{"d"}, {"a", "b"}]
