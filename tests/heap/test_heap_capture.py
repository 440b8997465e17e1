"""A snapshot contains what a walk in Python finds, and taking it changes nothing."""

from __future__ import annotations

import array
import collections
import functools
import gc
import sys
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replaydbg.heap.comparison.snapshot_diff import diff
from replaydbg.heap.labels import is_weak
from replaydbg.heap.snapshot import Snapshot, Taken
from tests.harness import heap_capture
from tests.harness.heap_capture import capture, reachable, referents, strong_targets


class Plain:
    """With a dictionary, or with values beside it."""


class Slotted:
    __slots__ = ("a", "b")


class Both(Slotted):
    pass


class OfList(list):  # type: ignore[type-arg]
    pass


class OfC(functools.partial):  # type: ignore[type-arg]
    pass


class OfDict(dict):  # type: ignore[type-arg]
    __slots__ = ("extra",)


def _holder(value: Any, other: Any) -> Any:
    def inner(x: Any = other, *, y: Any = other) -> Any:
        return value, x, y

    return inner


def _generator(value: Any) -> Any:
    kept = value
    yield kept


_ATOMS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=120)
    | st.binary(max_size=20)
    | st.just(...)
)
_KINDS = 17


def _make(kind: int, parts: list[Any]) -> Any:
    a, b = parts[0], parts[-1]
    match kind:
        case 0:
            return list(parts)
        case 1:
            return tuple(parts)
        case 2:
            return {f"k{i}": part for i, part in enumerate(parts)}
        case 3:
            return dict(enumerate(parts, -1))
        case 4 | 5:
            instance = Plain() if kind == 4 else Both()
            instance.a, instance.b = a, b  # type: ignore[union-attr]
            if len(parts) > 2:
                instance.__dict__["no name"] = a
            return instance
        case 6:
            slotted = Slotted()
            slotted.a = a  # type: ignore[attr-defined]
            return slotted
        case 7:
            return _holder(a, b)
        case 8:
            generator = _generator(a)
            next(generator)
            return generator
        case 9:
            return OfList(parts)
        case 10:
            return functools.partial(print, a, key=b)
        case 11:
            return collections.deque(parts)
        case 12:
            return {Plain(): a, (1, "x", (2.5, None)): b, "y" * 100: a}
        case 13:
            return {Plain(), frozenset([1, Plain()]), 3}
        case 14:
            return [].append, Plain().__str__, iter(parts), slice(a, b)
        case 15:
            of_c = OfC(int, a)
            of_c.a = b  # type: ignore[attr-defined]
            if len(parts) > 2:
                of_c.__dict__["c"] = a
            return of_c
        case 16:
            error = OSError(a, b)
            error.c = a  # type: ignore[attr-defined]
            error.__context__ = KeyError(b)
            return error
        case _:
            return collections.defaultdict(list, {1: a, "z": b})


@st.composite
def _graphs(draw: st.DrawFn) -> dict[str, Any]:
    made: list[Any] = draw(st.lists(_ATOMS, min_size=1, max_size=6))
    for kind in draw(st.lists(st.integers(0, _KINDS), max_size=12)):
        some = draw(st.lists(st.integers(0, len(made) - 1), min_size=1, max_size=4))
        made.append(_make(kind, [made[i] for i in some]))
    cycle: list[Any] = list(made)
    cycle.append(cycle)
    return {"last": made[-1], "all": cycle}


_OWN = {type(None), bool, type(...)}


def _evaluates(snapshot: Snapshot, objects: dict[int, Any], node: int) -> None:
    o = objects[snapshot.address[node]]
    for edge in snapshot.edges(node):
        text = snapshot.step("o", edge.label)
        if ".<" in text:
            continue
        assert id(eval(text, {"o": o, "gc": gc})) == snapshot.address[edge.target], text


@given(_graphs())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_snapshot_of_any_objects_is_what_a_walk_in_python_finds(roots: dict[str, Any]) -> None:
    snapshot = capture(roots)
    expected = reachable(roots)

    found = set(snapshot.address)
    classes = {address for address in found if snapshot.type_name(snapshot.find(address) or 0) == "builtins.type"}
    inside = _inside_classes(snapshot, expected)
    assert set(expected) - found == set()
    assert found - set(expected) - classes <= inside
    for address, o in expected.items():
        node = snapshot.find(address)
        assert node is not None
        if not isinstance(o, type):
            assert sorted(set(strong_targets(snapshot, node))) == sorted({id(each) for each in referents(o)}), repr(o)
            _evaluates(snapshot, expected, node)
        assert snapshot.type_name(node) == f"{type(o).__module__}.{type(o).__qualname__}".replace(
            "builtins.weakref", "weakref"
        )


def _inside_classes(snapshot: Snapshot, expected: dict[int, Any]) -> set[int]:
    """Return objects reachable only through the insides of classes: the walk in Python stops at them."""
    left = [
        node for address, o in expected.items() if isinstance(o, type) and (node := snapshot.find(address)) is not None
    ]
    found: set[int] = set()
    while left:
        node = left.pop()
        if snapshot.address[node] not in found:
            found.add(snapshot.address[node])
            left += [edge.target for edge in snapshot.edges(node)]
    return found


def test_values_are_written_as_python_writes_them() -> None:
    values = [
        0,
        -1,
        2**27,
        -(2**28),
        2**28,
        2**200,
        -(2**240),
        1.5,
        -0.0,
        float("inf"),
        "a'b",
        'a"b',
        "'\"",
        "\n\t\x00\x7f\xe9\u200b\ud800\U0001f600",
    ]
    values += ["", b"", b"\x00a'\xff", True, None, ..., bytearray(b"ab")]
    snapshot = capture({"x": values})

    texts = {snapshot.address[node]: snapshot.value_text(node) for node in range(len(snapshot))}
    assert [texts[id(value)] for value in values] == [repr(value) if value is not ... else "..." for value in values]


def test_long_values_are_cut() -> None:
    text, number = "x" * 500, 10**400
    snapshot = capture({"text": text, "number": number, "bytes": b"y" * 500}, text=20)

    texts = {snapshot.value_text(root.node) for root in snapshot.roots}
    assert texts == {repr("x" * 20) + "...", f"<int of {number.bit_length()} bits>", repr(b"y" * 20) + "..."}


@pytest.mark.parametrize("kind", [str, str.encode, lambda text: bytearray(text, "ascii"), lambda text: int(text, 36)])
def test_values_that_are_cut_are_compared_as_a_whole(kind: Callable[[str], Any]) -> None:
    class Holder:
        pass

    holder = Holder()

    def taken(text: str, number: int) -> Snapshot:
        holder.x = kind(text)  # type: ignore[attr-defined]
        kept.append(holder.x)  # type: ignore[attr-defined]
        snapshot = capture({"holder": holder}, text=20)
        return replace(snapshot, taken=Taken(number, run="r"))

    kept: list[Any] = []
    long = "z" * 500
    one, same, other = taken(long + "1", 1), taken((long + "1")[:], 2), taken(long + "2", 3)
    (change,) = diff(one, other, scope="all").changed.items

    assert diff(one, same, scope="all").changed.items == ()
    assert change.before == change.after
    assert "#" not in change.before
    assert "\0" not in change.before


@pytest.mark.parametrize(
    "o",
    [
        7,
        2**100,
        1.5,
        "ascii",
        "caf\xe9",
        "\u20ac",
        b"bytes",
        (1, 2),
        [1, 2, 3],
        set(range(100)),
        frozenset([1]),
        bytearray(100),
        collections.deque(range(300)),
        array.array("d", [1.0] * 9),
        object(),
        Slotted(),
        {i: None for i in range(-300, -250)},
    ],
    ids=lambda o: type(o).__name__,
)
def test_sizes_are_those_that_python_reports(o: object) -> None:
    snapshot = capture({"o": o})

    assert snapshot.size[snapshot.roots[0].node] - _owned_keys(o) == sys.getsizeof(o)


def _owned_keys(o: object) -> int:
    return sum(sys.getsizeof(key) for key in o) if isinstance(o, dict) else 0


def test_weak_references_are_marked() -> None:
    kept = Plain()
    ref = weakref.ref(kept)
    table: weakref.WeakValueDictionary[str, Plain] = weakref.WeakValueDictionary({"x": kept})
    snapshot = capture({"ref": ref, "table": table})

    node = snapshot.find(id(kept))
    assert node is not None
    labels = [edge.label for n in range(len(snapshot)) for edge in snapshot.edges(n) if edge.target == node]
    assert len(labels) == 2
    assert all(is_weak(label) for label in labels)
    assert snapshot.step("ref", labels[0]) == "ref()"


def test_no_dictionary_is_made_for_an_instance() -> None:
    instances = [Plain() for _ in range(100)]
    for each in instances:
        each.a = 1  # type: ignore[attr-defined]
    gc.collect()
    before = sum(type(each) is dict for each in gc.get_objects())
    snapshot = capture({"x": instances})
    after = sum(type(each) is dict for each in gc.get_objects())

    assert len(snapshot) > 100
    assert after - before <= 1  # the array with the roots


def test_nothing_of_the_program_runs() -> None:
    class Loud:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

        def __len__(self) -> int:
            raise AssertionError

        __repr__ = __sizeof__ = __hash__ = __iter__ = __eq__ = __bool__ = __len__  # type: ignore[assignment]

        @property
        def lively(self) -> int:
            raise AssertionError

    class Key:
        def __eq__(self, other: object) -> bool:
            assert not is_capturing
            return self is other

        def __hash__(self) -> int:
            assert not is_capturing
            return 1

    is_capturing = False
    keys = {Key(): Key(), Key(): 2, 1: 3}
    roots = {"loud": Loud(), "keys": keys}
    is_capturing = True
    snapshot = capture(roots)
    is_capturing = False

    assert snapshot.find(id(roots["loud"])) is not None


def test_what_limits_cut_is_said() -> None:
    many = [[i] for i in range(10_000, 10_100)]

    assert capture({"x": many}).cut == ()
    assert capture({"x": many}, nodes=50).cut == (
        "The snapshot is limited to 50 objects: 100 references lead to others.",
    )
    assert capture({"x": many}, items=10).cut == (
        "Of 1 large container only the first 10 items are in the snapshot: 90 are left out.",
    )
    (said,) = capture({"x": many}, edges=10).cut
    assert said.startswith("The snapshot is limited to 10 references: ")


def test_a_list_that_is_being_sorted_is_empty() -> None:
    items = [3, 1, 2]
    taken: list[Snapshot] = []

    def key(item: int) -> int:
        taken.append(capture({"items": items}))
        return item

    items.sort(key=key)
    for snapshot in taken:
        assert len(snapshot) == 1
        assert snapshot.size[0] == sys.getsizeof([])


def test_a_long_chain_takes_no_stack() -> None:
    chain: Any = None
    for _ in range(200_000):
        chain = [chain]
    snapshot = capture({"chain": chain})

    assert len(snapshot) == 200_001
    while chain:  # its deallocation must not recurse, either
        chain = chain.pop()


def test_the_helper_walks_what_it_says() -> None:
    assert heap_capture.reachable({"x": (1, "a")}).keys() >= {id(1), id("a")}
