"""Makes about as many objects as it is told, and replaces one in a hundred; takes
snapshots of both states, prints before and after, or lets a peer look."""

import gc
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import replaydbg

# An order is eight objects or nine.
_PER_ORDER = 8
_CUSTOMERS = 10_000


class Order:
    """With slots, as what there are many of has."""

    __slots__ = ("lines", "name", "number", "price")

    def __init__(self, number: int) -> None:
        self.number = number + 1000
        self.price = number * 0.5
        self.name = f"order {number}"
        self.lines: list[object] = [number + 2000, (self.price, number + 3000)]


class Customer:
    """With a dictionary."""

    def __init__(self, number: int) -> None:
        self.name = f"customer {number}"
        self.orders: dict[int, Order] = {}


def peer(name: str) -> tuple[Callable[[], Any], Callable[[Any, Any], Any]]:
    """How a peer looks at a state, and how it compares two."""
    if name == "objgraph":
        objgraph = import_module("objgraph")
        return objgraph.typestats, lambda one, two: {kind: two[kind] - one.get(kind, 0) for kind in two}
    if name == "pympler":
        muppy, summary = import_module("pympler.muppy"), import_module("pympler.summary")
        return lambda: summary.summarize(muppy.get_objects()), summary.get_diff
    heap = import_module("guppy").hpy().heap
    return heap, lambda one, two: str(two - one)


customers = [Customer(number) for number in range(_CUSTOMERS)]
orders = int(sys.argv[1]) // _PER_ORDER


def change() -> None:
    """Replace one order in a hundred."""
    for number in range(0, orders, 100):
        customers[number % _CUSTOMERS].orders[number] = Order(number + 7)


for number in range(orders):
    customers[number % _CUSTOMERS].orders[number] = Order(number)
if sys.argv[2:] == ["printed"]:
    print("before")
    change()
    print("after")
elif len(sys.argv) > 2:
    look, compare = peer(sys.argv[2])
    gc.collect()
    began = time.process_time()
    before = look()
    looked = time.process_time()
    change()
    changed = time.process_time()
    after = look()
    seen = time.process_time()
    compare(before, after)
    print(looked - began, time.process_time() - seen)
else:
    replaydbg.snapshot("before")
    change()
    replaydbg.snapshot("after")
