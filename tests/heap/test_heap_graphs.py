"""The walks over a heap's graph agree with the definitions, in Python and in C."""

from __future__ import annotations

import heapq
import importlib
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.heap.labels import MEMBER, PLAIN, REFERENT, WEAK
from replaydbg.heap.walks.graph_walks import UNREACHED
from replaydbg.heap.walks.kernel import KERNEL, Kernel, NativeKernel, PythonKernel

KERNELS = [PythonKernel(), KERNEL]

Plain = tuple["array[int]", "array[int]", "array[int]"]


@pytest.fixture(params=KERNELS, ids=["python", "native"])
def kernel(request: pytest.FixtureRequest) -> Kernel:
    return request.param  # type: ignore[no-any-return]


def columns(edges: Iterable[Sequence[int]], roots: Iterable[int]) -> Plain:
    first, target = array("I", [0]), array("I")
    for each in edges:
        target.extend(each)
        first.append(len(target))
    return first, target, array("I", roots)


@st.composite
def graphs(draw: st.DrawFn) -> Plain:
    count = draw(st.integers(1, 12))
    nodes = st.integers(0, count - 1)
    edges = draw(st.lists(st.lists(nodes, max_size=4), min_size=count, max_size=count))
    return columns(edges, draw(st.lists(nodes, max_size=3)))


def reached(graph: Plain, *, without: int | None = None) -> set[int]:
    first, target, roots = graph
    todo = [root for root in roots if root != without]
    seen = set(todo)
    while todo:
        node = todo.pop()
        for to in target[first[node] : first[node + 1]]:
            if to != without and to not in seen:
                seen.add(to)
                todo.append(to)
    return seen


def naive_dominators(graph: Plain) -> dict[int, set[int]]:
    """A node dominates everything that cannot be reached without it."""
    every = reached(graph)
    found: dict[int, set[int]] = {node: set() for node in every}
    for node in every:
        for each in every - reached(graph, without=node) - {node}:
            found[each].add(node)
    return found


def test_the_native_kernel_is_there() -> None:
    assert isinstance(KERNEL, NativeKernel)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.slow
@given(graph=graphs())
def test_immediate_dominators_are_those_of_the_definition(kernel: Kernel, graph: Plain) -> None:
    count = len(graph[0]) - 1
    expected = naive_dominators(graph)

    dominator, order = kernel.dominators(*graph)

    assert sorted(order) == sorted(expected)
    assert {node for node in range(count) if dominator[node] == UNREACHED} == set(range(count)) - set(expected)
    for node, above in expected.items():
        # The immediate dominator is the one that all the others dominate.
        assert dominator[node] == max(above, key=lambda each: len(expected[each]), default=count)
    place = {node: number for number, node in enumerate(order)}
    assert all(dominator[node] == count or place[dominator[node]] < place[node] for node in order)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.slow
@given(graph=graphs(), data=st.data())
def test_retained_sizes_are_what_would_be_free(kernel: Kernel, graph: Plain, data: st.DataObject) -> None:
    count = len(graph[0]) - 1
    size = array("Q", data.draw(st.lists(st.integers(0, 1000), min_size=count, max_size=count)))
    every = reached(graph)

    found = kernel.retained(*kernel.dominators(*graph), size)

    for node in range(count):
        lost = every - reached(graph, without=node)
        assert found[node] == (sum(size[each] for each in lost) if node in every else 0)
    assert found[count] == sum(size[node] for node in every)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.slow
@given(graph=graphs(), data=st.data())
def test_groups_retain_what_would_be_free_without_each(kernel: Kernel, graph: Plain, data: st.DataObject) -> None:
    count = len(graph[0]) - 1
    group = array("I", data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)))
    chosen = bytes(data.draw(st.lists(st.integers(0, 1), min_size=count, max_size=count)))
    dominator, order = kernel.dominators(*graph)
    retained = kernel.retained(dominator, order, array("Q", [1]) * count)

    found = kernel.retained_by(dominator, order, group, retained, chosen, 3)

    dominators = naive_dominators(graph)
    for number in range(3):
        members = {node for node in dominators if chosen[node] and group[node] == number}
        assert found[number] == sum(1 for node, above in dominators.items() if members & (above | {node}))


def labels_of(graph: Plain, data: st.DataObject) -> array[int]:
    kinds = st.sampled_from([PLAIN, MEMBER, REFERENT])
    size = len(graph[1])
    return array("I", data.draw(st.lists(kinds, min_size=size, max_size=size)))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.slow
@given(graph=graphs(), data=st.data())
def test_the_tree_is_one_of_best_paths(kernel: Kernel, graph: Plain, data: st.DataObject) -> None:
    """By Dijkstra: steps without a name are worse than any number of others."""
    first, target, roots = graph
    label = labels_of(graph, data)
    count = len(first) - 1
    distance: dict[int, tuple[int, int]] = {}
    pending = [((0, 1), root) for root in roots]
    while pending:
        (nameless, steps), node = heapq.heappop(pending)
        if node not in distance:
            distance[node] = (nameless, steps)
            for edge in range(first[node], first[node + 1]):
                heapq.heappush(pending, ((nameless + (label[edge] == REFERENT), steps + 1), target[edge]))

    parent, via = kernel.tree(first, target, label, roots, len(roots))

    for node in range(count):
        if node not in distance:
            assert parent[node] == UNREACHED
        elif distance[node] == (0, 1):
            assert (parent[node], roots[via[node]]) == (count, node)
        else:
            nameless, steps = distance[parent[node]]
            assert distance[node] == (nameless + (label[via[node]] == REFERENT), steps + 1)
            assert first[parent[node]] <= via[node] < first[parent[node] + 1]
            assert target[via[node]] == node


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_preferred_roots_reach_is_reached_from_them(kernel: Kernel) -> None:
    graph = columns([[1], [2], [], [2]], [0, 3])

    first, target, roots = graph
    label = array("I", [PLAIN]) * len(target)

    assert kernel.tree(first, target, label, roots, 1)[0][2] == 1
    assert kernel.tree(first, target, label, roots, 2)[0][2] == 3


@pytest.mark.slow
@given(graph=graphs(), data=st.data())
def test_both_kernels_give_the_same(graph: Plain, data: st.DataObject) -> None:
    python, native = KERNELS
    first, target, _ = graph
    label = array("I", data.draw(st.lists(st.sampled_from([0, WEAK, 1]), min_size=len(target), max_size=len(target))))

    kinds = labels_of(graph, data)

    assert python.strong(first, target, label) == native.strong(first, target, label)
    for preferred in range(len(graph[2]) + 2):
        trees = [kernel.tree(first, target, kinds, graph[2], preferred) for kernel in (python, native)]
        assert trees[0] == trees[1]
    assert python.dominators(*graph) == native.dominators(*graph)


def test_a_chain_of_a_million_is_no_recursion(kernel: Kernel) -> None:
    count = 1_000_000 if isinstance(kernel, NativeKernel) else 20_000
    first, target = array("I", range(count)), array("I", range(1, count))
    first.append(count - 1)
    graph = (first, target, array("I", [0]))

    dominator, order = kernel.dominators(*graph)
    retained = kernel.retained(dominator, order, array("Q", [1]) * count)

    assert dominator[count - 1] == count - 2
    assert retained[0] == count
    assert kernel.tree(first, target, array("I", [REFERENT]) * len(target), graph[2], 1)[0][count - 1] == count - 2
    chosen = b"\1" * count
    assert kernel.retained_by(dominator, order, array("I", [0]) * count, retained, chosen, 1)[0] == count


@pytest.mark.slow
@given(numbers=st.lists(st.integers(0, 2**32 - 1), max_size=8), data=st.data())
def test_columns_that_lead_nowhere_are_refused_or_walked(numbers: list[int], data: st.DataObject) -> None:
    """With inconsistent columns the native walks read no memory outside them."""
    module: Any = importlib.import_module("replaydbg.native._graph")
    wild = st.lists(st.sampled_from([0, 1, 2, 3, 7, 2**31, 2**32 - 1]), max_size=6)
    column = [array("I", data.draw(wild)) for _ in range(8)]
    wide = [array("Q", data.draw(wild)) for _ in range(3)]
    calls: list[Callable[[], object]] = [
        lambda: module.strong(column[0], column[1], column[2]),
        lambda: module.tree(column[0], column[1], column[3], column[2], 1),
        lambda: module.dominators(column[0], column[1], column[2]),
        lambda: module.retained(column[0], column[1], wide[0]),
        lambda: module.retained_by(column[0], column[1], column[2], wide[0], bytes(each % 2 for each in numbers), 3),
        lambda: module.translate(b"abc", column[0], b"abcd", column[1]),
        lambda: module.match(wide[0], wide[1], column[0], 1),
        lambda: module.unlike(
            (column[0], column[1], wide[0], column[2], column[3], column[4], wide[1]),
            (column[0], column[1], wide[0], column[2], column[3], column[4], wide[1]),
            column[5],
            column[5],
            column[6],
            column[7],
        ),
        lambda: module.census(column[0], wide[0], bytes(each % 2 for each in numbers), 3),
        lambda: module.edges_to(column[0], bytes(each % 2 for each in numbers)),
        lambda: module.tops(column[0], bytes(each % 2 for each in numbers)),
        lambda: module.origins(
            column[0], column[1], column[2], column[3], b".a.b", column[4], bytes(len(numbers)), bytes(len(numbers))
        ),
        lambda: module.match_paths(
            (column[0], column[1], wide[0], column[2], column[3], column[4], wide[1]),
            (column[0], column[1], wide[0], column[2], column[3], column[4], wide[1]),
            column[5],
            column[6],
            column[7],
        ),
        lambda: module.tree(b"abc", b"", b"", b"", 0),
    ]
    for call in calls:
        try:
            call()
        except (ValueError, TypeError):
            continue
