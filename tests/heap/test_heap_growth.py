"""A leak grows steadily over a series of snapshots, and the object that alone holds it is named."""

from __future__ import annotations

from typing import Any

import pytest

from replaydbg.heap.retention.growth import FEWEST, growth, is_steady
from replaydbg.heap.snapshot import Snapshot
from tests.harness.heap_mirror import Thing, mirror


def request(number: int) -> Thing:
    thing = Thing()
    vars(thing).update(path=f"/orders/{number}", headers={"n": number + 1000})
    return thing


def series(rounds: int, names: dict[str, Any], step: Any) -> list[Snapshot]:
    kept: list[Any] = []
    taken = []
    for number in range(1, rounds + 1):
        step(number)
        taken.append(mirror(names, number=number, keep=kept))
    return taken


def test_a_cache_that_keeps_every_request_is_named() -> None:
    server = Thing()
    vars(server).update(cache={}, last=None, config={"debug": False})
    names: dict[str, Any] = {"server": server, "counter": 0}

    def load(number: int) -> None:
        for each in range(10):
            vars(server)["cache"][f"{number}-{each}"] = request(number * 10 + each)
        vars(server)["last"] = request(number)
        names["counter"] += 10

    found = growth(series(5, names, load))

    (leak,) = found.leaks
    assert (leak.path, leak.type, leak.items) == ("app.server.cache", "builtins.dict", (10, 20, 30, 40, 50))
    assert leak.types[0].type == "app.Thing"
    assert leak.types[0].counts == (12, 22, 32, 42, 52)
    assert leak.retained[-1] > 4 * leak.retained[0]
    assert found.verdict == (
        "Grows steadily: 12 -> 52 app.Thing over 5 snapshots, held by app.server.cache (dict, 10 -> 50 items)."
    )


def test_a_chain_of_objects_is_named_by_its_beginning() -> None:
    names: dict[str, Any] = {"log": [], "head": Thing()}

    def load(number: int) -> None:
        for _ in range(5):
            thing = Thing()
            vars(thing)["next"] = vars(names["head"]).get("next")
            vars(names["head"])["next"] = thing

    (leak,) = growth(series(5, names, load)).leaks

    assert leak.path == "app.head"


def test_a_cache_with_a_bound_is_no_leak() -> None:
    cache: dict[int, Thing] = {}

    def load(number: int) -> None:
        for each in range(10):
            cache[(number * 10 + each) % 20] = request(each)

    found = growth(series(6, {"cache": cache}, load))

    assert found.leaks == ()
    assert found.verdict == "Nothing grows steadily."
    assert found.types[0].counts[-1] > found.types[0].counts[0]


def test_few_snapshots_tell_no_leak() -> None:
    items: list[Thing] = []

    found = growth(series(FEWEST - 1, {"items": items}, lambda number: items.append(Thing())))

    assert found.leaks == ()
    assert found.verdict == "3 snapshots are too few to find a leak: at least 4 are needed."
    assert growth([]).verdict == "The recording has no snapshots."


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((1, 2, 3, 4), True),
        ((1, 2, 3), False),
        ((1, 2, 2, 3, 4), True),
        ((1, 2, 2, 2, 3), False),
        ((1, 5, 4, 6, 7), False),
        ((4, 4, 4, 4), False),
    ],
)
def test_steady_growth_never_goes_back(counts: tuple[int, ...], expected: bool) -> None:
    assert is_steady(counts) is expected


def test_growing_containers_are_ranked_by_what_they_retain() -> None:
    names: dict[str, Any] = {"small": [], "large": {}, "same": [1, 2, 3], "shrinks": [Thing() for _ in range(9)]}

    def load(number: int) -> None:
        names["small"].append(number + 1000)
        names["shrinks"].pop()
        for each in range(10):
            # Each has containers of its own, which do not grow.
            names["large"][f"{number}-{each}"] = request(number * 10 + each)
        if number == 3:
            names["late"] = []
        if number > 3:
            names["late"] += [request(number * 1000 + each) for each in range(3)]

    found = growth(series(5, names, load))

    assert [each.path for each in found.containers] == ["app.large", "app.late", "app.small"]
    large, late, small = found.containers
    assert (large.type, large.items) == ("builtins.dict", (10, 20, 30, 40, 50))
    assert small.items == (1, 2, 3, 4, 5)
    assert (late.items, late.retained[:2]) == ((0, 0, 0, 3, 6), (0, 0))
    assert list(large.retained) == sorted(large.retained)
