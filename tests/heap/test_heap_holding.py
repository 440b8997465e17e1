"""The holders of an object, its path, and the bytes that cutting a reference would free."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.errors import UsageError
from replaydbg.heap.builder import Node, build
from replaydbg.heap.labels import MEMBER, VALUE
from replaydbg.heap.retention.holding import MOST_STEPS, Holding
from replaydbg.heap.retention.path_lookup import find
from replaydbg.heap.snapshot import FRAME_TYPE


@pytest.fixture
def shop() -> Holding:
    """Return a cache that holds two orders, one also held by a local variable; and a weak reference to the other."""
    nodes = [
        Node(1, "module", 0),
        Node(2, "builtins.dict", 100),
        Node(3, "__main__.Order", 50),
        Node(4, "__main__.Order", 50),
        Node(5, "builtins.list", 30),
        Node(6, FRAME_TYPE, 0),
        Node(7, "weakref.ReferenceType", 10),
        Node(8, "builtins.str", 20, "'x'"),
        Node(9, "builtins.frozenset", 20),
    ]
    edges: list[tuple[int, str | int | tuple[int, int], int]] = [
        (1, ".cache", 2),
        (2, "['a']", 3),
        (2, (MEMBER, 1), 9),
        (2, (VALUE, 1), 4),
        (3, ".lines", 5),
        (5, 0, 8),
        (5, 1, 3),
        (6, ".f_locals['order']", 4),
        (1, ".ref", 7),
        (7, "~()", 3),
    ]
    return Holding(build(nodes, edges, [("__main__", 1), ("thread 0: handle() line 12", 6)]))


def test_holders_say_what_cutting_them_frees(shop: Holding) -> None:
    weak, strong = sorted(shop.holders(find(shop, "cache['a']")), key=lambda each: not each.is_weak)[:2]

    assert [(each.path, each.type, each.frees) for each in shop.holders(2)] == [
        ("cache['a']", "builtins.dict", 100),
        ("cache['a'].lines[1]", "builtins.list", 0),
        ("ref()", "weakref.ReferenceType", 0),
    ]
    assert weak.step == "~()"
    assert not strong.is_weak


def test_an_object_that_two_hold_is_freed_by_neither(shop: Holding) -> None:
    node = find(shop, "order")

    assert {each.path for each in shop.holders(node)} == {
        "list(cache.values())[1]",
        "order in thread 0: handle() line 12",
    }
    assert all(each.frees == 0 for each in shop.holders(node))
    assert list(shop.chain(node)) == []


def test_dominators_are_told_from_the_nearest(shop: Holding) -> None:
    assert [shop.path(each) for each in shop.chain(find(shop, "cache['a'].lines[0]"))] == [
        "cache['a'].lines",
        "cache['a']",
        "cache",
        "__main__",
    ]


@pytest.mark.parametrize(
    ("source", "address"),
    [
        ("cache", 2),
        ("__main__.cache", 2),
        ("__main__", 1),
        ("cache['a'].lines", 5),
        ("list(cache)[1]", 9),
        ("list(cache.values())[1]", 4),
        ("order", 4),
        ("order in thread 0: handle() line 12", 4),
        ("0x5", 5),
    ],
)
def test_expressions_are_found(shop: Holding, source: str, address: int) -> None:
    assert shop.snapshot.address[find(shop, source)] == address


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("nothing", "'nothing' is neither a variable nor a module in the snapshot; modules are __main__."),
        ("cache['b']", "\"cache['b']\" is not in the snapshot: \"cache['b']\" does not exist there."),
        ("len(cache)", "'len(cache)' is a computed value: name a variable, an attribute or an item."),
        ("cache[x]", "'cache[x]': an index must be a literal number or string."),
        ("cache[", "'cache[' cannot be read: '[' was never closed (<unknown>, line 1)."),
        ("0x99", "The snapshot has no object at 0x99."),
    ],
)
def test_what_is_not_found_is_said(shop: Holding, source: str, sentence: str) -> None:
    with pytest.raises(UsageError) as raised:
        find(shop, source)

    assert str(raised.value) == sentence


@given(source=st.one_of(st.text(max_size=30), st.text("ab.[]()'0x -1", max_size=30)))
@pytest.mark.slow
def test_any_text_is_found_or_refused(source: str) -> None:
    held = Holding(build([Node(1, "module"), Node(2, "app.A")], [(1, ".a", 2)], [("app", 1)]))

    try:
        node = find(held, source)
    except UsageError:
        return
    assert 0 <= node < 2


def test_a_long_path_tells_how_long_it_is() -> None:
    count = 1000
    nodes = [Node(1, "module"), *(Node(16 * place, "app.Link") for place in range(1, count + 1))]
    edges = [(1, ".head", 16), *((16 * place, ".next", 16 * place + 16) for place in range(1, count))]
    held = Holding(build(nodes, edges, [("app", 1)]))

    text = held.path(len(nodes) - 1)

    assert text.startswith("app.head.next.next")
    assert f"<{count - MOST_STEPS:,} more steps>" in text
    assert text.count(".next") == MOST_STEPS - 1


def test_what_nobody_holds_is_said_to_be_so() -> None:
    held = Holding(build([Node(1, "module"), Node(2, "app.A")], [(1, "~.ref", 2)], [("app", 1)]))

    assert held.path(1) == "<app.A at 0x2, unreferenced>"
    assert [(each.path, each.is_weak, each.frees) for each in held.holders(1)] == [("app.ref", True, 0)]
