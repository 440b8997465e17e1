"""Compare one object that is in both snapshots: its variables, attributes and items, one by one."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from operator import ne
from typing import NamedTuple

from replaydbg.heap.comparison.diff_results import ADDED, CHANGED, REMOVED, REORDERED, REPLACED, RETYPED, VALUE
from replaydbg.heap.labels import INDEX, MEMBER, PLAIN, WEAK, kind_of, number_of
from replaydbg.heap.labels import VALUE as VALUE_STEP
from replaydbg.heap.snapshot import FRAME_TYPE, NO_VALUE, Snapshot
from replaydbg.heap.walks.graph_walks import UNREACHED
from replaydbg.heap.walks.object_comparison import Columns, Matching, is_equal_leaf, is_value_equal

MOST_ALIGNED = 1_000_000
"""Number of item pairs up to which two sequences are aligned; beyond, only removed and added items count."""

DEEPEST = 8
"""Depth of nested tuples that are compared; deeper ones are the same only if they are one object."""

STRETCH = 1024
"""Number of items of two sequences that are compared at once."""

IMMUTABLE = ("builtins.tuple", "builtins.frozenset")
"""Immutable containers, whose identity never matters."""


MAPPINGS = ("builtins.dict", "collections.defaultdict", "collections.OrderedDict", "collections.Counter")
"""Types whose numbers are keys. In other types, items numbered from 0 form a sequence."""


class EdgeChange(NamedTuple):
    """A change, as the edges that lead to it from its owner in either snapshot."""

    kind: str
    before: tuple[int, ...]
    """Edges; none: it did not exist, or it is the owner itself."""
    after: tuple[int, ...]


class ObjectComparer:
    """Compares single objects of two snapshots whose objects were matched."""

    def __init__(self, before: Snapshot, after: Snapshot, matching: Matching) -> None:
        self.before = before
        self.after = after
        self.matching = matching
        self._old, self._new = Columns.of(before), Columns.of(after)
        # Then equal labels are equal steps.
        self._is_one_table = matching.texts == array("I", range(len(matching.texts)))

    def compare(self, node: int, other: int) -> list[EdgeChange]:
        """Return the changes in `node`, which is `other` after."""
        found = []
        if self.matching.types[self.before.type[node]] != self.after.type[other]:
            found.append(EdgeChange(RETYPED, (), ()))
        is_frame = self.after.type_name(other) == FRAME_TYPE  # its value is its current line
        if not is_frame and not is_value_equal(self._old, self._new, self.matching, node, other):
            found.append(EdgeChange(VALUE, (), ()))
        is_retyped = bool(found) and found[0].kind == RETYPED
        return found + [raw for raw in self._edges(node, other, (), ()) if not self._is_idle(raw, is_retyped)]

    def _is_idle(self, raw: EdgeChange, is_retyped: bool) -> bool:
        """Whether a change is uninteresting: a class is reported once, and temporary values are not variables."""
        snapshot, edges = (self.after, raw.after) if raw.after else (self.before, raw.before)
        step = snapshot.step_text(snapshot.label[edges[0]]) if edges else ""
        return step.startswith(".<stack ") or (is_retyped and step == ".__class__")

    def is_same(self, node: int, other: int) -> bool:
        """Whether two nodes are one object, or equal numbers, texts or tuples."""
        if self.matching.to_after[node] == other:
            return True
        if is_equal_leaf(self._old, self._new, self.matching, node, other):
            return True
        return self._is_immutable(node, other) and self._old_key(node) == self._new_key(other)

    # ---- edges ----

    def _edges(self, node: int, other: int, way: tuple[int, ...], way_after: tuple[int, ...]) -> Iterator[EdgeChange]:
        old, old_items = _split(self.before, node)
        new, new_items = _split(self.after, other)
        yield from self._named(old, new, way, way_after)
        yield from self._items(old_items, new_items, way, way_after)

    def _named(
        self, old: Sequence[int], new: Sequence[int], way: tuple[int, ...], way_after: tuple[int, ...]
    ) -> Iterator[EdgeChange]:
        """Compare edges that have a name: those of one name correspond, whatever their positions."""
        old, new = self._without_common(old, new)
        if not old and not new:
            return
        is_dictionary = _has_items(self.before, old) or _has_items(self.after, new)
        names = self._by_name(self.before, old, is_dictionary=is_dictionary)
        others = self._by_name(self.after, new, is_dictionary=is_dictionary)
        for name, edge in names.items():
            if name not in others:
                yield EdgeChange(REMOVED, (*way, edge), ())
            else:
                yield from self._pair(edge, others[name], way, way_after)
        for name, edge in others.items():
            if name not in names:
                yield EdgeChange(ADDED, (), (*way_after, edge))

    def _without_common(self, old: Sequence[int], new: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        """Leave out edges of one name to one object; a dictionary may have a million of them."""
        if (places := self._places(old, new)) is not None:
            return [old[place] for place in places], [new[place] for place in places]
        texts, same = self.matching.texts, self.matching.to_after
        labels, targets = self.before.label, self.before.target
        keys = [
            (texts[label >> 4] << 4 | label & 15 if label & 7 == PLAIN else label, same[targets[edge]])
            for edge in old
            for label in (labels[edge],)
        ]
        others = [(self.after.label[edge], self.after.target[edge]) for edge in new]
        # Keys and values by position are identified by the objects at both, so that they stay together.
        common = {key for key in set(keys).intersection(others) if key[0] & 7 not in (MEMBER, VALUE_STEP)}
        if not common:
            return old, new
        return (
            [edge for edge, key in zip(old, keys, strict=True) if key not in common],
            [edge for edge, key in zip(new, others, strict=True) if key not in common],
        )

    def _places(self, old: Sequence[int], new: Sequence[int]) -> list[int] | None:
        """Return the positions of edges with another target, if both have the same names in the same order;

        None: they do not.
        """
        if not isinstance(old, range) or not isinstance(new, range) or len(old) != len(new):
            return None
        labels, others = self.before.label[old.start : old.stop], self.after.label[new.start : new.stop]
        if not self._is_one_table or labels != others:
            return None
        targets = map(self.matching.to_after.__getitem__, self.before.target[old.start : old.stop])
        pairs = zip(targets, self.after.target[new.start : new.stop], strict=True)
        places = [place for place, (target, other) in enumerate(pairs) if target != other]
        # Keys and values by position belong together.
        return None if any(labels[place] & 7 in (MEMBER, VALUE_STEP) for place in places) else places

    def _by_name(self, snapshot: Snapshot, edges: Sequence[int], *, is_dictionary: bool) -> dict[Hashable, int]:
        found: dict[Hashable, int] = {}
        is_before = snapshot is self.before
        keys = {number_of(snapshot.label[edge]): edge for edge in edges if kind_of(snapshot.label[edge]) == MEMBER}
        for edge in edges:
            label = snapshot.label[edge]
            kind, number = kind_of(label), number_of(label)
            name: Hashable = number
            if kind == PLAIN:
                name = snapshot.strings.raw(number)
            elif kind == MEMBER:
                if is_dictionary:
                    continue  # the entry is reported by its value
                name = self._key(snapshot.target[edge], is_before=is_before)
            elif kind == VALUE_STEP and number in keys:
                name = self._key(snapshot.target[keys[number]], is_before=is_before)
            place = 0
            while (kind, label & WEAK, name, place) in found:
                place += 1
            found[kind, label & WEAK, name, place] = edge
        return found

    def _pair(self, edge: int, other: int, way: tuple[int, ...], way_after: tuple[int, ...]) -> Iterator[EdgeChange]:
        """Compare the targets of two edges of one name."""
        node, target = self.before.target[edge], self.after.target[other]
        if self.is_same(node, target):
            return
        is_one_type = self.matching.types[self.before.type[node]] == self.after.type[target]
        if is_one_type and len(way) < DEEPEST and self._is_immutable(node, target):
            yield from self._edges(node, target, (*way, edge), (*way_after, other))
            return
        has_values = self.before.value[node] & 3 != NO_VALUE or self.after.value[target] & 3 != NO_VALUE
        kind = REPLACED if is_one_type and not has_values else CHANGED
        yield EdgeChange(kind, (*way, edge), (*way_after, other))

    # ---- sequences ----

    def _items(self, old: range, new: range, way: tuple[int, ...], way_after: tuple[int, ...]) -> Iterator[EdgeChange]:
        """Compare the items of sequences: one that was inserted in the middle does not change those after it."""
        same = self.matching.to_after.__getitem__
        targets, others = self.before.target, self.after.target
        most = min(len(old), len(new))
        begin = 0
        # Most items of a long sequence are the same, so whole stretches are compared first.
        while begin + STRETCH <= most and (
            array("I", map(same, targets[old.start + begin : old.start + begin + STRETCH]))
            == others[new.start + begin : new.start + begin + STRETCH]
        ):
            begin += STRETCH
        while begin < most and (
            same(targets[old[begin]]) == others[new[begin]] or self.is_same(targets[old[begin]], others[new[begin]])
        ):
            begin += 1
        end = 0
        while end < most - begin and self.is_same(targets[old[-1 - end]], others[new[-1 - end]]):
            end += 1
        old, new = old[begin : len(old) - end], new[begin : len(new) - end]
        if not old:
            yield from (EdgeChange(ADDED, (), (*way_after, edge)) for edge in new)
        elif not new:
            yield from (EdgeChange(REMOVED, (*way, edge), ()) for edge in old)
        else:
            yield from self._middle(old, new, way, way_after)

    def _middle(self, old: range, new: range, way: tuple[int, ...], way_after: tuple[int, ...]) -> Iterator[EdgeChange]:
        keys = [self._key(self.before.target[edge], is_before=True) for edge in old]
        others = [self._key(self.after.target[edge], is_before=False) for edge in new]
        if len(old) == len(new):
            yield from self._of_one_length(keys, others, (old, new), way, way_after)
            return
        # The shorter one always comes first, so that the difference is the same from both sides.
        is_turned = len(old) > len(new)
        for one, two in _aligned(others, keys) if is_turned else _aligned(keys, others):
            edges, more = (two, one) if is_turned else (one, two)
            paired = min(len(edges), len(more))
            for place in range(paired):
                yield from self._pair(old[edges[place]], new[more[place]], way, way_after)
            yield from (EdgeChange(REMOVED, (*way, old[place]), ()) for place in edges[paired:])
            yield from (EdgeChange(ADDED, (), (*way_after, new[place])) for place in more[paired:])

    def _of_one_length(
        self,
        keys: list[Hashable],
        others: list[Hashable],
        edges: tuple[range, range],
        way: tuple[int, ...],
        way_after: tuple[int, ...],
    ) -> Iterator[EdgeChange]:
        old, new = edges
        counts, counts_after = Counter(keys), Counter(others)
        gone = _surplus(keys, counts - counts_after)
        if not gone:
            yield EdgeChange(REORDERED, way, way_after)
        elif sum(map(ne, keys, others)) > len(gone):
            # An item was removed at one end and one added at the other, as in a queue.
            yield from (EdgeChange(REMOVED, (*way, old[place]), ()) for place in gone)
            new_ones = _surplus(others, counts_after - counts)
            yield from (EdgeChange(ADDED, (), (*way_after, new[place])) for place in new_ones)
        else:
            for edge, other in zip(old, new, strict=True):
                yield from self._pair(edge, other, way, way_after)

    # ---- keys by which objects are recognised ----

    def _is_immutable(self, node: int, other: int) -> bool:
        return self.before.type_name(node) in IMMUTABLE and self.after.type_name(other) in IMMUTABLE

    def _key(self, node: int, *, is_before: bool) -> Hashable:
        return self._old_key(node) if is_before else self._new_key(node)

    def _old_key(self, node: int, depth: int = 0) -> Hashable:
        content = self._content(self.before, node, depth)
        return self.matching.to_after[node] if content is None else content

    def _new_key(self, node: int, depth: int = 0) -> Hashable:
        content = self._content(self.after, node, depth)
        return node if content is None else content

    def _content(self, snapshot: Snapshot, node: int, depth: int) -> Hashable | None:
        """Return a key of the content of a number, a text or a tuple; None for an object that is in both snapshots."""
        first, last = snapshot.first_edge[node], snapshot.first_edge[node + 1]
        name = snapshot.type_name(node)
        if name in IMMUTABLE and depth < DEEPEST:
            key = self._old_key if snapshot is self.before else self._new_key
            items = [key(snapshot.target[edge], depth + 1) for edge in range(first, last)]
            # The order of a frozenset is meaningless.
            return name, frozenset(items) if name == IMMUTABLE[1] else tuple(items)
        if first == last and snapshot.value[node] & 3 != NO_VALUE:
            return name, snapshot.value_key(node), snapshot.size[node]
        known = self.matching.to_after if snapshot is self.before else self.matching.to_before
        # An object that is in one snapshot only is equal to nothing but itself.
        return None if known[node] != UNREACHED else (snapshot is self.before, node)


def _split(snapshot: Snapshot, node: int) -> tuple[Sequence[int], range]:
    """Return the edges of a node that have a name, and those that are items of a sequence."""
    edges = range(snapshot.first_edge[node], snapshot.first_edge[node + 1])
    labels = snapshot.label[edges.start : edges.stop]
    if not labels or snapshot.type_name(node) in MAPPINGS:
        return edges, edges[:0]
    # Items are adjacent and numbered from 0; nearly always they are alone, or follow all other edges.
    if labels[0] == INDEX and labels[-1] == (len(labels) - 1) << 4 | INDEX:
        return edges[:0], edges
    places = [place for place, each in enumerate(labels) if each & 15 == INDEX]
    is_sequence = bool(places) and places[-1] - places[0] + 1 == len(places)
    if not is_sequence or labels[places[0]] != INDEX or labels[places[-1]] >> 4 != len(places) - 1:
        return edges, edges[:0]
    items = edges[places[0] : places[-1] + 1]
    return [*edges[: places[0]], *edges[places[-1] + 1 :]], items


def _has_items(snapshot: Snapshot, edges: Sequence[int]) -> bool:
    """Whether edges belong to a dictionary: its keys are next to its values."""
    return any(
        kind_of(snapshot.label[edge]) == VALUE_STEP
        or (
            kind_of(snapshot.label[edge]) == PLAIN and snapshot.strings.raw(number_of(snapshot.label[edge]))[:1] == b"["
        )
        for edge in edges
    )


def _aligned(short: list[Hashable], long: list[Hashable]) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the positions in two sequences between their common items."""
    if len(short) * len(long) <= MOST_ALIGNED:
        matcher = SequenceMatcher(None, short, long, autojunk=False)
        for kind, begin, end, other, last in matcher.get_opcodes():
            if kind != "equal":
                yield list(range(begin, end)), list(range(other, last))
        return
    counts, others = Counter(short), Counter(long)
    yield _surplus(short, counts - others), _surplus(long, others - counts)


def _surplus(keys: list[Hashable], more: Counter[Hashable]) -> list[int]:
    """Return the positions of the last keys of which there are more than in the other sequence."""
    left = more.copy()
    found = []
    for place in range(len(keys) - 1, -1, -1):
        if left.get(keys[place], 0) > 0:
            left[keys[place]] -= 1
            found.append(place)
    return found[::-1]
