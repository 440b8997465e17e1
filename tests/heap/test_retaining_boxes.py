"""The boxes of an icicle graph: what keeps memory alive, step by step, with objects that are alike in one box."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from replaydbg.heap.builder import Node, build
from replaydbg.heap.retention.holding import Holding
from replaydbg.heap.retention.retaining_boxes import MOST_DEPTH, SEVERAL, RetainingBox, retaining_boxes
from replaydbg.heap.snapshot import FRAME_TYPE
from tests.harness.heap_mirror import Thing, mirror


def boxes_of(names: dict[str, Any]) -> RetainingBox:
    return retaining_boxes(Holding(mirror(names)))


def inside(box: RetainingBox, *steps: str) -> RetainingBox:
    """Return the box behind some steps."""
    for step in steps:
        (box,) = (each for each in box.boxes if each.step == step)
    return box


def thing(**attributes: Any) -> Thing:
    made = Thing()
    vars(made).update(attributes)
    return made


def test_objects_that_are_alike_are_one_box() -> None:
    names = {"server": thing(handlers=[thing(data=list(range(number, number + 3))) for number in range(1000, 1030)])}

    whole = boxes_of(names)

    handlers = inside(whole, "app", ".server", ".handlers")
    (several,) = handlers.boxes
    assert (several.step, several.type, several.count) == (SEVERAL, "app.Thing", 30)
    assert several.path.startswith("app.server.handlers[")
    data = inside(several, ".data")
    assert (data.type, data.count) == ("builtins.list", 30)
    assert handlers.retained > several.retained > data.retained
    assert whole.retained == inside(whole, "app").retained


def test_items_of_a_small_container_have_their_keys() -> None:
    whole = boxes_of({"caches": {"users": [thing() for _ in range(50)], "pages": [thing() for _ in range(20)]}})

    caches = inside(whole, "app", ".caches")

    assert [each.step for each in caches.boxes if each.type == "builtins.list"] == ["['users']", "['pages']"]


def test_what_two_hold_is_inside_what_holds_both() -> None:
    shared = thing(data=list(range(1000, 1100)))

    whole = boxes_of({"pair": thing(one=thing(it=shared), other=thing(it=shared))})

    pair = inside(whole, "app", ".pair")
    assert pair.boxes[0].step in (".one.it", ".other.it")
    assert inside(pair, ".one").retained < pair.boxes[0].retained


def test_variables_of_calls_have_their_names() -> None:
    nodes = [Node(1, FRAME_TYPE, 0), Node(2, "builtins.list", 90), Node(3, "builtins.dict", 100)]
    edges: list[tuple[int, str | int | tuple[int, int], int]] = [(1, ".f_locals['order']", 2), (2, 0, 3)]

    whole = retaining_boxes(Holding(build(nodes, edges, [("thread 0: handle() line 12", 1)])))

    order = inside(whole, "<thread 0: handle() line 12>", "order")
    assert order.path == "order in thread 0: handle() line 12"
    assert (order.retained, inside(order, "[0]").retained) == (190, 100)


def test_a_long_chain_ends_somewhere() -> None:
    head = thing()
    for _ in range(3 * MOST_DEPTH):
        head = thing(next=head)

    box, depth = boxes_of({"head": head}), 0
    while box.boxes:
        box, depth = box.boxes[0], depth + 1

    assert depth == MOST_DEPTH


@given(st.recursive(st.integers(1000, 1005), lambda part: st.lists(part, max_size=12), max_leaves=60))
def test_a_box_is_as_large_as_those_inside_at_least(value: Any) -> None:
    def check(box: RetainingBox) -> int:
        assert sum(map(check, box.boxes)) <= box.retained
        sizes = [each.retained for each in box.boxes]
        assert sizes == sorted(sizes, reverse=True)
        return box.retained

    check(boxes_of({"value": value}))
