"""Comparison of two snapshots in Python: common texts, common objects, and objects that have changed."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from replaydbg.heap.labels import PLAIN
from replaydbg.heap.snapshot import FLOAT, NO_VALUE, TEXT, Snapshot, Strings
from replaydbg.heap.walks.graph_walks import UNREACHED


class Columns(NamedTuple):
    """The columns that are compared, in the order in which the native kernel takes them."""

    type: array[int]
    value: array[int]
    size: array[int]
    first_edge: array[int]
    target: array[int]
    label: array[int]
    floats: array[float]

    @classmethod
    def of(cls, snapshot: Snapshot) -> Columns:
        """Return the columns of `snapshot`."""
        return cls(
            snapshot.type,
            snapshot.value,
            snapshot.size,
            snapshot.first_edge,
            snapshot.target,
            snapshot.label,
            snapshot.floats,
        )


class Matching(NamedTuple):
    """The nodes of two snapshots that are the same objects, and the types and texts that are the same."""

    to_after: array[int]
    """I. For each node before: the one after, or UNREACHED."""
    to_before: array[int]
    """I. The reverse."""
    types: array[int]
    """I. For each type before: the index of the same one after, or UNREACHED."""
    texts: array[int]
    """I. For each text before: the index of the same one after, or UNREACHED."""


def translate(before: Strings, after: Strings) -> array[int]:
    """Return for each text of a table its index in another one, or UNREACHED."""
    places = {after.raw(index): index for index in range(len(after))}
    return array("I", [places.get(before.raw(index), UNREACHED) for index in range(len(before))])


def match(
    before: Sequence[int], after: Sequence[int], since: Sequence[int], number: int
) -> tuple[array[int], array[int]]:
    """Return which nodes are the same: those at equal addresses whose memory was not freed after snapshot `number`."""
    places = dict(zip(before, range(len(before)), strict=True))
    to_after, to_before = array("I", [UNREACHED]) * len(before), array("I", [UNREACHED]) * len(after)
    for place, address in enumerate(after):
        if address in places and since[place] <= number:
            other = places[address]
            to_after[other] = place
            to_before[place] = other
    return to_after, to_before


def unlike(before: Columns, after: Columns, matching: Matching) -> array[int]:
    """Return the nodes before that are the same objects after, but with another type, value or other edges.

    Equal numbers and texts do not count as different for being different objects.
    """
    found = array("I")
    for node, other in enumerate(matching.to_after):
        if other != UNREACHED and _is_unlike(before, after, matching, node, other):
            found.append(node)
    return found


def _is_unlike(before: Columns, after: Columns, matching: Matching, node: int, other: int) -> bool:
    if matching.types[before.type[node]] != after.type[other]:
        return True
    if not is_value_equal(before, after, matching, node, other):
        return True
    first, last = before.first_edge[node], before.first_edge[node + 1]
    move = after.first_edge[other] - first
    if after.first_edge[other + 1] - move != last:
        return True
    for edge in range(first, last):
        if not is_label_equal(matching, before.label[edge], after.label[edge + move]):
            return True
        target = after.target[edge + move]
        if matching.to_after[before.target[edge]] != target and not is_equal_leaf(
            before, after, matching, before.target[edge], target
        ):
            return True
    return False


def is_label_equal(matching: Matching, label: int, other: int) -> bool:
    """Whether two steps are the same."""
    if label & 15 != other & 15:
        return False
    return matching.texts[label >> 4] == other >> 4 if label & 7 == PLAIN else label == other


def is_value_equal(before: Columns, after: Columns, matching: Matching, node: int, other: int) -> bool:
    """Whether the values of two nodes are the same; two that have none are."""
    one, two = before.value[node], after.value[other]
    if one & 3 != two & 3:
        return False
    if one & 3 == TEXT:
        return matching.texts[one >> 2] == two >> 2
    if one & 3 == FLOAT:
        # Compared as bits: a NaN equals itself here, and 0.0 is not -0.0.
        return before.floats[one >> 2 : (one >> 2) + 1].tobytes() == after.floats[two >> 2 : (two >> 2) + 1].tobytes()
    return one == two


def is_equal_leaf(before: Columns, after: Columns, matching: Matching, node: int, other: int) -> bool:
    """Whether two different objects are equal numbers, texts or the like, whose identity never matters."""
    return (
        matching.types[before.type[node]] == after.type[other]
        and before.value[node] & 3 != NO_VALUE
        and is_value_equal(before, after, matching, node, other)
        and before.size[node] == after.size[other]
        and before.first_edge[node] == before.first_edge[node + 1]
        and after.first_edge[other] == after.first_edge[other + 1]
    )
