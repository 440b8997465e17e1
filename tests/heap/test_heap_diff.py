"""The difference of two snapshots contains what was done between them, and nothing else."""

from __future__ import annotations

import copy
from array import array
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replaydbg.heap.builder import Node, build
from replaydbg.heap.comparison.diff_results import Change, Diff
from replaydbg.heap.comparison.snapshot_diff import diff
from replaydbg.heap.retention.holding import Holding
from replaydbg.heap.retention.path_lookup import find
from replaydbg.heap.snapshot import FRAME_TYPE, TEXT, Snapshot, Taken
from replaydbg.heap.walks.kernel import KERNEL, Kernel, PythonKernel
from replaydbg.heap.walks.object_comparison import Columns
from replaydbg.render.heap_tables import diff_tables
from tests.harness.heap_mirror import Thing, mirror

COIN = st.integers(0, 1)
KERNELS = [PythonKernel(), KERNEL]


class World:
    """Variables, and snapshots of them before and after something was done."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.kept: list[Any] = []

    def diff(self, do: Callable[[], object], **options: Any) -> Diff:
        before = mirror(self.names, number=1, keep=self.kept)
        do()
        after = mirror(self.names, number=2, keep=self.kept)
        found = diff(before, after, most=None, **options)
        assert_inverse(found, diff(after, before, most=None, **options))
        return found


def assert_inverse(found: Diff, other: Diff) -> None:
    inverted = other.inverted()
    for section in ("changed", "grown", "types", "new", "gone", "aliases"):
        mine, its = getattr(found, section), getattr(inverted, section)
        assert mine.total == its.total
        assert set(mine.items) == set(its.items), section
    assert found.hidden == inverted.hidden


def told(found: Diff) -> list[tuple[str, str, str, str]]:
    return sorted((each.kind, each.path, each.before, each.after) for each in found.changed.items)


@pytest.fixture
def world() -> World:
    return World()


def test_a_changed_attribute_is_told_by_its_path(world: World) -> None:
    account = Thing()
    account.balance = 12  # type: ignore[attr-defined]
    world.names["accts"] = [account]

    found = world.diff(lambda: setattr(account, "balance", 0))

    assert told(found) == [("changed", "app.accts[0].balance", "12", "0")]
    assert found.changed.items[0].owner_type == "app.Thing"
    assert found.changed.items[0].owner == (id(account), id(account))
    assert found.grown.items == ()


def test_a_cache_that_grew_is_told_with_its_items(world: World) -> None:
    cache: dict[str, list[int]] = {"old": [1]}
    world.names["cache"] = cache

    found = world.diff(lambda: cache.update((str(number), [number + 1000]) for number in range(20)))

    (grown,) = found.grown.items
    assert (grown.path, grown.type, grown.before, grown.after) == ("app.cache", "builtins.dict", 1, 21)
    assert grown.retained_after > grown.retained_before
    assert {each.type: (each.added, each.removed) for each in found.types.items} == {
        "builtins.list": (20, 0),
        "builtins.int": (20, 0),
    }
    assert found.new.total == 20
    assert found.new.items[0].path.startswith("app.cache['")
    assert all(each.kind == "added" for each in found.changed.items)


@pytest.mark.parametrize(("more", "first"), [(9, "Changed values (10)"), (10, "Containers that grew or shrank (1)")])
def test_a_container_that_grows_a_lot_comes_before_changed_values(world: World, more: int, first: str) -> None:
    items: list[int] = []
    world.names |= {"seen": 0, "items": items}

    def grow() -> None:
        world.names["seen"] = 1
        items.extend(range(1000, 1000 + more))

    found = world.diff(grow)

    _, table, *_ = diff_tables(found)
    assert table.title == first


def test_an_item_put_in_front_changes_none_behind_it(world: World) -> None:
    items = [Thing() for _ in range(50)]
    world.names["items"] = items

    found = world.diff(lambda: items.insert(0, Thing()))

    assert told(found) == [("added", "app.items[0]", "", "<app.Thing>")]


def test_a_queue_that_moved_on_lost_one_and_got_one(world: World) -> None:
    items = [Thing() for _ in range(50)]
    world.names["items"] = items

    def move() -> None:
        items.append(Thing())
        items.pop(0)

    found = world.diff(move)

    assert told(found) == [
        ("added", "app.items[49]", "", "<app.Thing>"),
        ("removed", "app.items[0]", "<app.Thing>", ""),
    ]


def test_sorting_is_one_change(world: World) -> None:
    items = [3000, 1000, 2000]
    world.names["items"] = items

    found = world.diff(items.sort)

    assert told(found) == [("reordered", "app.items", "<list of 3>", "<list of 3>")]


def test_equal_numbers_and_tuples_are_no_change(world: World) -> None:
    thing = Thing()
    world.names["thing"] = thing
    thing.at, thing.number, thing.text = (1, (int("2000"), "x")), int("1000"), "ab"  # type: ignore[attr-defined]

    def again() -> None:
        thing.at = (1, (int("2000"), "x"))  # type: ignore[attr-defined]
        thing.number = int("1000")  # type: ignore[attr-defined]
        thing.text = "".join(["a", "b"])  # type: ignore[attr-defined]

    assert told(world.diff(again)) == []


def test_a_change_in_a_tuple_is_told_where_it_is(world: World) -> None:
    thing = Thing()
    world.names["thing"] = thing
    thing.at = (1, (2, 3))  # type: ignore[attr-defined]

    found = world.diff(lambda: setattr(thing, "at", (1, (2, 4))))

    assert told(found) == [("changed", "app.thing.at[1][1]", "3", "4")]


def test_another_list_with_the_same_items_is_another_one(world: World) -> None:
    world.names["items"] = [1, 2]

    found = world.diff(lambda: world.names.update(items=[1, 2]))

    assert told(found) == [("replaced", "app.items", "<list of 2>", "<list of 2>")]


def test_keys_that_are_objects_name_their_values(world: World) -> None:
    keys = [Thing(), Thing(), Thing()]
    table = {key: number for number, key in enumerate(keys)}
    world.names["table"] = table

    def change() -> None:
        del table[keys[0]]
        table[keys[2]] = 7

    found = world.diff(change)

    assert told(found) == [
        ("changed", "list(app.table.values())[1]", "2", "7"),
        ("removed", "list(app.table.values())[0]", "0", ""),
    ]


def test_an_object_of_another_class_is_the_same_object() -> None:
    before = build([Node(1, "module"), Node(2, "app.A")], [(1, ".x", 2)], [("app", 1)], taken=Taken(run="r"))
    after = build([Node(1, "module"), Node(2, "app.B")], [(1, ".x", 2)], [("app", 1)], taken=Taken(number=2, run="r"))

    found = diff(before, after)

    assert told(found) == [("retyped", "app.x", "<app.A>", "<app.B>")]
    assert {each.type: (each.before, each.after) for each in found.types.items} == {"app.A": (1, 0), "app.B": (0, 1)}


def test_an_address_that_was_used_again_is_another_object() -> None:
    nodes = [Node(1, "module"), Node(2, "app.A")]
    before = build(nodes, [(1, ".x", 2)], [("app", 1)], taken=Taken(number=1, run="r"))
    again = [Node(1, "module"), Node(2, "app.A", since=2)]
    after = build(again, [(1, ".x", 2)], [("app", 1)], taken=Taken(number=2, run="r"))

    assert told(diff(before, after)) == [("replaced", "app.x", "<app.A>", "<app.A>")]
    assert diff(before, after).new.total == diff(before, after).gone.total == 1


# ---- aliases ----


def test_another_name_for_an_object_is_told(world: World) -> None:
    world.names.update(a=[1], b=[2])

    found = world.diff(lambda: world.names.update(b=world.names["a"]))

    (alias,) = found.aliases.items
    assert (alias.kind, alias.name, alias.others, alias.now) == ("joined", "app.b", ("app.a",), "<list of 1>")


def test_two_names_that_part_are_told(world: World) -> None:
    shared = [1]
    world.names.update(a=shared, b=shared)

    found = world.diff(lambda: world.names.update(b=[1, 2]))

    (alias,) = found.aliases.items
    assert (alias.kind, alias.name, alias.others, alias.now) == ("parted", "app.b", ("app.a",), "<list of 2>")


def test_an_object_that_moved_has_no_alias(world: World) -> None:
    world.names.update(todo=[Thing(), Thing()], done=[Thing()])

    found = world.diff(lambda: world.names["done"].append(world.names["todo"].pop()))

    assert found.aliases.items == ()
    assert found.new.total == found.gone.total == 0


def test_equal_numbers_share_nothing(world: World) -> None:
    world.names.update(a=1, b=2)

    assert world.diff(lambda: world.names.update(b=1)).aliases.items == ()


# ---- scope ----


def test_what_a_library_holds_is_counted_and_not_told() -> None:
    nodes = [
        Node(1, "module"),
        Node(2, "logging.Logger"),
        Node(3, "requests.Session"),
        Node(4, "builtins.int", 28, 1),
        Node(5, "builtins.int", 28, 2),
    ]
    names = [(1, ".log", 2), (1, ".http", 3)]
    before = build(nodes, [*names, (1, ".x", 4), (2, ".level", 4), (3, ".n", 4)], [("app", 1)], taken=Taken(run="r"))
    later = Taken(number=2, run="r")
    after = build(nodes, [*names, (1, ".x", 5), (2, ".level", 5), (3, ".n", 5)], [("app", 1)], taken=later)

    mine, standard, every = (diff(before, after, scope=scope) for scope in ("mine", "standard", "all"))

    assert [each.path for each in mine.changed.items] == ["app.x"]
    assert mine.hidden.changed == 2
    assert {each.path for each in standard.changed.items} == {"app.x", "app.log.level"}
    assert {each.path: each.origin for each in every.changed.items} == {
        "app.x": "mine",
        "app.log.level": "standard",
        "app.http.n": "library",
    }
    assert not every.hidden


def test_what_is_left_out_is_counted(world: World) -> None:
    world.names["items"] = items = [Thing() for _ in range(10)]
    before = mirror(world.names, keep=world.kept)
    for place in range(10):
        items[place] = Thing()
    after = mirror(world.names, number=2, keep=world.kept)

    found = diff(before, after, most=3)

    assert (len(found.changed.items), found.changed.total, found.changed.left_out) == (3, 10, 7)


def test_variables_of_a_call_are_named_with_it() -> None:
    def taken(number: int, line: int, value: int) -> Snapshot:
        return build(
            [
                Node(1, FRAME_TYPE),
                Node(2, "builtins.int", 28, value),
                Node(9, "builtins.cell"),
                Node(10, "builtins.list"),
            ],
            [(1, ".f_locals['x']", 2), (1, ".<cell y>", 9), (9, ".cell_contents", 10), (10, 0, 2)],
            [(f"thread 0: handle() line {line}", 1)],
            taken=Taken(number=number, run="r"),
        )

    before, after = taken(1, 12, 5), taken(2, 14, 6)
    after.since[1] = 2

    assert told(diff(before, after)) == [
        ("changed", "x in thread 0: handle() line 14", "5", "6"),
        ("changed", "y[0] in thread 0: handle() line 14", "5", "6"),
    ]


# ---- two runs ----


def run_of(names: dict[str, Any], run: str) -> Snapshot:
    return mirror(copy.deepcopy(names), run=run)


def test_two_runs_are_compared_by_paths() -> None:
    names = {"accts": [_thing(12), _thing(5)], "config": {"debug": False}}
    one = run_of(names, "one")
    vars(names["accts"][0])["value"] = 0  # type: ignore[index]
    names["config"]["limit"] = 9  # type: ignore[index]

    found = diff(one, run_of(names, "two"))

    assert not found.is_same_run
    assert told(found) == [
        ("added", "app.config['limit']", "", "9"),
        ("changed", "app.accts[0].value", "12", "0"),
    ]


def test_between_two_runs_an_item_in_front_changes_none_behind_it() -> None:
    items = [_thing(number) for number in range(10)]
    one = run_of({"items": items}, "one")
    items.insert(0, _thing(99))

    found = diff(one, run_of({"items": items}, "two"))

    assert told(found) == [("added", "app.items[0]", "", "<app.Thing>")]
    assert [(each.path, each.before, each.after) for each in found.grown.items] == [("app.items", 10, 11)]


def test_between_two_runs_names_that_part_are_told() -> None:
    shared: list[int] = [1]
    one = run_of({"a": shared, "b": shared}, "one")

    found = diff(one, run_of({"a": [1], "b": [1]}, "two"))

    assert [(each.kind, each.name, each.others) for each in found.aliases.items] == [("parted", "app.b", ("app.a",))]


# ---- for any objects ----

leaves = st.one_of(st.integers(-5, 5), st.integers(1000, 1010), st.sampled_from(["a", "b", ""]), st.none(), st.floats())
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(["k", "l", 3, 4]), inner, max_size=3),
        st.tuples(inner, inner),
        st.builds(lambda each: _thing(each), inner),
        st.frozensets(st.integers(0, 3), max_size=2),
    ),
    max_leaves=12,
)
worlds = st.dictionaries(st.sampled_from(["a", "b", "c"]), values, max_size=3)


def _thing(value: Any) -> Thing:
    thing = Thing()
    thing.value = value  # type: ignore[attr-defined]
    return thing


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.slow
@given(names=worlds)
def test_a_snapshot_does_not_differ_from_itself(kernel: Kernel, names: dict[str, Any]) -> None:
    kept: list[Any] = []
    one, two = mirror(names, number=1, keep=kept), mirror(names, number=2, keep=kept)

    assert diff(one, two, kernel=kernel).is_empty
    assert diff(one, two, kernel=kernel, by_identity=False).is_empty


@pytest.mark.slow
@given(names=worlds, others=worlds)
def test_both_kernels_match_runs_alike(names: dict[str, Any], others: dict[str, Any]) -> None:
    one, two = run_of({**names, "both": [names, others]}, "one"), run_of({**others, "both": [others, names]}, "two")

    assert diff(one, two, kernel=KERNELS[0], most=None) == diff(one, two, kernel=KERNELS[1], most=None)


@pytest.mark.parametrize("kernel", KERNELS)
def test_types_and_values_of_related_numbers_are_different_content(kernel: Kernel) -> None:
    """Numbers of types and texts are small, and unequal pairs of them must not come to the same sign."""
    object_of_type_3, text_6_of_type_6 = 3, 4

    def columns(*targets: int) -> Columns:
        types, values = [0, 1, 1, 3, 6], [0, 0, 0, 0, 6 << 2 | TEXT]
        first_edge, labels = [0, 2, 3, 4, 4, 4], [1, 17, 64, 64]
        numbers = (types, values, first_edge, [1, 2, *targets], labels)
        kinds, kept, ends, to, how = (array("I", each) for each in numbers)
        return Columns(kinds, kept, array("Q", bytes(8 * len(types))), ends, to, how, array("d"))

    before = columns(object_of_type_3, text_6_of_type_6)
    after = columns(text_6_of_type_6, object_of_type_3)
    same = array("I", range(7))

    to_after, to_before = kernel.match_paths(before, after, same, same, array("I", [0, 0]))

    assert list(to_after) == list(to_before) == [0, 2, 1, 3, 4]


@pytest.mark.slow
@given(names=worlds)
def test_a_run_does_not_differ_from_an_equal_one(names: dict[str, Any]) -> None:
    other = copy.deepcopy(names)

    assert diff(mirror(names, run="one"), mirror(other, run="two")).is_empty


@pytest.mark.slow
@given(names=worlds, others=worlds, data=st.data())
def test_a_diff_is_the_inverse_of_that_from_the_other_side(
    names: dict[str, Any], others: dict[str, Any], data: st.DataObject
) -> None:
    kept: list[Any] = []
    before = mirror(names, number=1, keep=kept)
    parts = [each for each in kept if isinstance(each, list)]
    for each in parts:
        if data.draw(COIN):
            each.extend(data.draw(st.lists(st.sampled_from([*kept, *others.values()]), max_size=3)))
        place = data.draw(st.integers(0, 9))
        del each[place : place + 1]
    names.update(others)
    after = mirror(names, number=2, keep=kept)

    for kernel in KERNELS:
        assert_inverse(
            diff(before, after, most=None, kernel=kernel, scope="all"),
            diff(after, before, most=None, kernel=kernel, scope="all"),
        )
    assert diff(before, after, kernel=KERNELS[0]) == diff(before, after, kernel=KERNELS[1])


@settings(max_examples=200)
@pytest.mark.slow
@given(names=worlds, data=st.data())
def test_known_changes_are_told_exactly(names: dict[str, Any], data: st.DataObject) -> None:
    """Each step changes an attribute or a key of an object; exactly those that differ in the end are reported."""
    kept: list[Any] = []
    names["root"] = _thing(0)
    before = mirror(names, number=1, keep=kept)
    owners = [names, *(vars(each) for each in kept if isinstance(each, Thing))]
    owners += [each for each in kept if isinstance(each, dict)]
    old = [dict(each) for each in owners]
    for step in range(data.draw(st.integers(0, 6))):
        owner = data.draw(st.sampled_from(owners))
        key = data.draw(st.sampled_from([*owner, "fresh"]))
        if key in owner and data.draw(COIN):
            del owner[key]
        else:
            owner[key] = f"new {step}"
    after = mirror(names, number=2, keep=kept)
    held = Holding(after)

    found = diff(before, after, most=None)

    expected = []
    for owner, was in zip(owners, old, strict=True):
        thing = next((each for each in kept if isinstance(each, Thing) and vars(each) is owner), owner)
        node = after.find(1 if owner is names else id(thing))
        if node is None or not held.is_held(node):
            continue
        for key in {*was, *owner}:
            if key not in was:
                expected.append((id(thing), key, "added"))
            elif key not in owner:
                expected.append((id(thing), key, "removed"))
            elif was[key] is not owner[key] and was[key] != owner[key]:
                expected.append((id(thing), key, "changed"))
    by_place = [
        (each.owner[0] if each.owner[0] != 1 else id(names), _key(each), each.kind) for each in found.changed.items
    ]
    assert sorted(by_place, key=repr) == sorted(expected, key=repr)


def _key(change: Change) -> Any:
    return change.step[1:] if change.step.startswith(".") else eval(change.step.strip("[]"))


@pytest.mark.slow
@given(names=worlds)
def test_paths_evaluate_to_the_object_that_they_name(names: dict[str, Any]) -> None:
    kept: list[Any] = []
    snapshot = mirror(names, keep=kept)
    held = Holding(snapshot)
    app = Thing()
    vars(app).update(names)
    objects = {id(each): each for each in kept}

    for node in range(len(snapshot)):
        if snapshot.address[node] != 1:
            assert eval(held.path(node), {"app": app}) is objects[snapshot.address[node]]
            assert snapshot.address[find(held, held.path(node))] == snapshot.address[node]
