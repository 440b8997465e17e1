"""The model of a snapshot has the type, the value and the holders of each node."""

from __future__ import annotations

import pytest

from replaydbg.heap.builder import Node, build
from replaydbg.heap.labels import MEMBER, REFERENT, VALUE, is_weak
from replaydbg.heap.snapshot import Edge, Snapshot


@pytest.fixture
def orders() -> Snapshot:
    return build(
        [
            Node(0x90, "app.Order", 48),
            Node(0x10, "module", 0, "app"),
            Node(0x50, "builtins.float", 24, 1.5),
            Node(0x40, "builtins.str", 60, "'caf\xe9'"),
            Node(0x30, "builtins.int", 28, -3),
            Node(0x20, "builtins.list", 80),
        ],
        [
            (0x10, ".orders", 0x20),
            (0x20, 0, 0x90),
            (0x20, 1, 0x30),
            (0x90, ".price", 0x50),
            (0x90, "~.__weakref__", 0x40),
            (0x90, (MEMBER, 2), 0x30),
            (0x90, (VALUE, 3), 0x30),
            (0x90, (REFERENT, 4), 0x30),
        ],
        [("app", 0x10)],
    )


def test_nodes_are_sorted_by_address(orders: Snapshot) -> None:
    assert list(orders.address) == [0x10, 0x20, 0x30, 0x40, 0x50, 0x90]
    assert orders.find(0x50) == 4
    assert orders.find(0x51) is None
    assert orders.find(0x91) is None


def test_values_are_texts(orders: Snapshot) -> None:
    assert [orders.value_text(node) for node in range(len(orders))] == ["app", "", "-3", "'caf\xe9'", "1.5", ""]


@pytest.mark.parametrize("number", [0, 1, -1, (1 << 28) - 1, -(1 << 28), 1 << 28, -(1 << 28) - 1, 10**30])
def test_ints_of_any_size_are_values(number: int) -> None:
    snapshot = build([Node(0x10, "builtins.int", 28, number)])

    assert snapshot.value_text(0) == str(number)


def test_steps_are_written_as_python(orders: Snapshot) -> None:
    edges = list(orders.edges(5))

    assert edges[0] == Edge(edges[0].label, 4)
    assert [orders.step("x", edge.label) for edge in edges] == [
        "x.price",
        "x.__weakref__",
        "list(x)[2]",
        "list(x.values())[3]",
        "gc.get_referents(x)[4]",
    ]
    assert [orders.step_text(edge.label) for edge in edges] == [
        ".price",
        "~.__weakref__",
        "{member 2}",
        "{value 3}",
        ".<4>",
    ]
    assert [is_weak(edge.label) for edge in edges] == [False, True, False, False, False]
    assert [orders.step_text(edge.label) for edge in orders.edges(1)] == ["[0]", "[1]"]


def test_roots_name_where_the_walk_began(orders: Snapshot) -> None:
    (root,) = orders.roots

    assert root.label == "app"
    assert orders.type_name(root.node) == "module"
