"""Match the objects of two runs, in Python: from the roots along edges of one name, then by content."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable, Sequence

from replaydbg.heap.labels import PLAIN
from replaydbg.heap.snapshot import FLOAT, NO_VALUE, TEXT
from replaydbg.heap.walks.graph_walks import UNREACHED
from replaydbg.heap.walks.object_comparison import Columns

ROUNDS = 2
"""Depth of the content by which objects are matched where paths no longer lead to them."""

MOST_EDGES = 50
"""Number of an object's edges that count as its content."""

_ELSEWHERE = 1 << 40
"""Added to the index of a type or text that exists only in the snapshot before."""


def match_paths(
    before: Columns, after: Columns, types: Sequence[int], texts: Sequence[int], roots: Sequence[int]
) -> tuple[array[int], array[int]]:
    """Return which nodes are the same, in both directions. `roots`: pairs of nodes, in alternation."""
    return _Matcher(before, after, types, texts).run(roots)


class _Matcher:
    def __init__(self, before: Columns, after: Columns, types: Sequence[int], texts: Sequence[int]) -> None:
        self.before, self.after = before, after
        self.types, self.texts = types, texts
        self.to_after = array("I", [UNREACHED]) * len(before.type)
        self.to_before = array("I", [UNREACHED]) * len(after.type)
        # Texts and types are replaced by those of the snapshot after, if they exist there.
        known = [text if text != UNREACHED else _ELSEWHERE | place for place, text in enumerate(texts)]
        kinds = [kind if kind != UNREACHED else _ELSEWHERE | place for place, kind in enumerate(types)]
        self.labels = [known[label >> 4] << 4 | label & 15 if label & 7 == PLAIN else label for label in before.label]
        signs: dict[Hashable, int] = {}
        values = [known[value >> 2] << 2 | TEXT if value & 3 == TEXT else value for value in before.value]
        self.signs = _signatures(before, [kinds[each] for each in before.type], values, self.labels, signs)
        self.signs_after = _signatures(after, after.type, after.value, after.label, signs)

    def run(self, roots: Sequence[int]) -> tuple[array[int], array[int]]:
        """Match all nodes that can be matched."""
        queue = [node for node, other in zip(roots[::2], roots[1::2], strict=True) if self._take(node, other)]
        for node in queue:
            self._children(node, self.to_after[node], queue)
        return self.to_after, self.to_before

    def _take(self, node: int, other: int) -> bool:
        if self.to_after[node] != UNREACHED or self.to_before[other] != UNREACHED:
            return False
        if self.types[self.before.type[node]] != self.after.type[other]:
            return False
        self.to_after[node], self.to_before[other] = other, node
        return True

    def _children(self, node: int, other: int, found: list[int]) -> None:
        before, after = self.before, self.after
        old = [
            (self.labels[edge], target)
            for edge in range(before.first_edge[node], before.first_edge[node + 1])
            if self.to_after[target := before.target[edge]] == UNREACHED
        ]
        new = [
            (after.label[edge], target)
            for edge in range(after.first_edge[other], after.first_edge[other + 1])
            if self.to_before[target := after.target[edge]] == UNREACHED
        ]
        if not old or not new:
            return
        signs, others = self.signs, self.signs_after
        # The same step to equal content, then equal content at another place, then the same step to the same type.
        self._pair([((how, signs[to]), to) for how, to in old], [((how, others[to]), to) for how, to in new], found)
        self._pair(
            [(signs[to], to) for how, to in old if how & 7 != PLAIN],
            [(others[to], to) for how, to in new if how & 7 != PLAIN],
            found,
        )
        # A number is identified by its value: a different one is a different object.
        self._pair(
            [each for each in old if not _is_leaf(before, each[1])],
            [each for each in new if not _is_leaf(after, each[1])],
            found,
        )

    def _pair(self, old: Iterable[tuple[Hashable, int]], new: Iterable[tuple[Hashable, int]], found: list[int]) -> None:
        """Match targets with equal keys, in order, that are not matched yet."""
        waiting: dict[Hashable, list[int]] = {}
        for key, target in new:
            if self.to_before[target] == UNREACHED:
                waiting.setdefault(key, []).append(target)
        for others in waiting.values():
            others.reverse()
        for key, target in old:
            others = waiting.get(key, [])
            while others and self.to_after[target] == UNREACHED:
                if self._take(target, others.pop()):
                    found.append(target)


def _is_leaf(columns: Columns, node: int) -> bool:
    has_edges = columns.first_edge[node] != columns.first_edge[node + 1]
    return columns.value[node] & 3 != NO_VALUE and not has_edges


def _signatures(
    columns: Columns,
    types: Sequence[int],
    values: Sequence[int],
    labels: Sequence[int],
    known: dict[Hashable, int],
) -> list[int]:
    """Return a number for the content of each node: the same in both snapshots for equal content to some depth."""
    floats, ends, targets = columns.floats, columns.first_edge, columns.target
    signs = [
        known.setdefault(
            (kind, floats[value >> 2 : (value >> 2) + 1].tobytes() if value & 3 == FLOAT else value), len(known)
        )
        for kind, value in zip(types, values, strict=True)
    ]
    for _ in range(ROUNDS):
        signs = [
            known.setdefault(
                (
                    signs[node],
                    tuple(labels[ends[node] : min(ends[node + 1], ends[node] + MOST_EDGES)]),
                    tuple(signs[to] for to in targets[ends[node] : min(ends[node + 1], ends[node] + MOST_EDGES)]),
                ),
                len(known),
            )
            for node in range(len(signs))
        ]
    return signs
