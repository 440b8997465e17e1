"""Which objects of two snapshots are the same: by identity within a run, by paths and content between two runs."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator

from replaydbg.heap.comparing import Matching
from replaydbg.heap.graphs import UNREACHED
from replaydbg.heap.kernel import Column, Kernel
from replaydbg.heap.labels import PLAIN, kind_of, number_of
from replaydbg.heap.snapshot import FRAME_TYPE, NO_VALUE, Snapshot, Strings

ROUNDS = 2
"""How deep the content is that objects are recognized by where a path does not lead to them any more."""

MOST_EDGES = 50
"""How much of an object's content that is."""


def is_one_run(before: Snapshot, after: Snapshot) -> bool:
    """Whether the addresses of two snapshots belong to one process, so that identity means something."""
    return before.taken.run != "" and before.taken.run == after.taken.run


def match(before: Snapshot, after: Snapshot, kernel: Kernel, *, by_identity: bool) -> Matching:
    """Return which nodes are the same objects, and which types and texts are the same."""
    types = kernel.translate(Strings.of(before.types), Strings.of(after.types))
    texts = _texts(before.strings, after.strings, kernel)
    if not by_identity:
        return _Matcher(before, after, types, texts).run()
    if before.taken.number <= after.taken.number:
        to_after, to_before = kernel.match(before.address, after.address, after.since, before.taken.number)
    else:
        to_before, to_after = kernel.match(after.address, before.address, before.since, after.taken.number)
    _part_frames(before, after, to_after, to_before)
    return Matching(to_after, to_before, types, texts)


def _texts(before: Strings, after: Strings, kernel: Kernel) -> Column:
    count = len(before)
    is_beginning = before.ends == after.ends[:count] and after.data.startswith(before.data)
    # Snapshots of a run are mostly written with one table that grows.
    return array("I", range(count)) if is_beginning else kernel.translate(before, after)


def frame_name(label: str) -> str:
    """Return the label of a frame without the line at which it stands."""
    return label.rpartition(" line ")[0] or label


def _part_frames(before: Snapshot, after: Snapshot, to_after: Column, to_before: Column) -> None:
    """Frames are no objects: one that lies where another one lay is the same only if it runs the same function."""
    frames = {root.node: frame_name(root.label) for root in before.roots if before.type_name(root.node) == FRAME_TYPE}
    others = {root.node: frame_name(root.label) for root in after.roots if after.type_name(root.node) == FRAME_TYPE}
    for node, name in frames.items():
        other = to_after[node]
        if other != UNREACHED and others.get(other) != name:
            to_after[node] = to_before[other] = UNREACHED


class _Matcher:
    """Matches the objects of two runs: from the roots, along edges of one name, then by type and content."""

    def __init__(self, before: Snapshot, after: Snapshot, types: Column, texts: Column) -> None:
        self.before, self.after = before, after
        self.types, self.texts = types, texts
        self.to_after = array("I", [UNREACHED]) * len(before)
        self.to_before = array("I", [UNREACHED]) * len(after)
        known: dict[Hashable, int] = {}
        self.signs = _signatures(before, known)
        self.signs_after = _signatures(after, known)

    def run(self) -> Matching:
        """Match all that can be."""
        queue = list(self._roots())
        for node, other in queue:
            queue.extend(self._children(node, other))
        return Matching(self.to_after, self.to_before, self.types, self.texts)

    def _roots(self) -> Iterator[tuple[int, int]]:
        names: dict[str, list[int]] = defaultdict(list)
        for root in self.after.roots:
            names[frame_name(root.label)].append(root.node)
        for root in self.before.roots:
            others = names.get(frame_name(root.label))
            if others and self._take(root.node, others.pop(0)):
                yield root.node, self.to_after[root.node]

    def _take(self, node: int, other: int) -> bool:
        if self.to_after[node] != UNREACHED or self.to_before[other] != UNREACHED:
            return False
        if self.types[self.before.type[node]] != self.after.type[other]:
            return False
        self.to_after[node], self.to_before[other] = other, node
        return True

    def _children(self, node: int, other: int) -> list[tuple[int, int]]:
        before, after = self.before, self.after
        old = [
            (self._label(before.label[edge]), target)
            for edge in range(before.first_edge[node], before.first_edge[node + 1])
            if self.to_after[target := before.target[edge]] == UNREACHED
        ]
        new = [
            (after.label[edge], target)
            for edge in range(after.first_edge[other], after.first_edge[other + 1])
            if self.to_before[target := after.target[edge]] == UNREACHED
        ]
        found: list[tuple[int, int]] = []
        if old and new:
            signs, others = self.signs, self.signs_after
            # The same step to equal content, then equal content at another place, then the same step to the same type.
            self._pair([((how, signs[to]), to) for how, to in old], [((how, others[to]), to) for how, to in new], found)
            self._pair(
                [(signs[to], to) for how, to in old if how & 7 != PLAIN],
                [(others[to], to) for how, to in new if how & 7 != PLAIN],
                found,
            )
            # A number is what it is: another one is another object.
            self._pair(
                [each for each in old if not _is_leaf(before, each[1])],
                [each for each in new if not _is_leaf(after, each[1])],
                found,
            )
        return found

    def _label(self, label: int) -> int:
        """Return a label of the snapshot before as it would be after; -1 if that has no such text."""
        if kind_of(label) != PLAIN:
            return label
        text = self.texts[number_of(label)]
        return -1 if text == UNREACHED else text << 4 | label & 15

    def _pair(
        self,
        old: Iterable[tuple[Hashable, int]],
        new: Iterable[tuple[Hashable, int]],
        found: list[tuple[int, int]],
    ) -> None:
        """Match targets of equal keys, in order, where they are not matched yet."""
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
                    found.append((target, self.to_after[target]))


def _is_leaf(snapshot: Snapshot, node: int) -> bool:
    has_edges = snapshot.first_edge[node] != snapshot.first_edge[node + 1]
    return snapshot.value[node] & 3 != NO_VALUE and not has_edges


def _signatures(snapshot: Snapshot, known: dict[Hashable, int]) -> list[int]:
    """Return a number for the content of each node: the same in both snapshots for what is equal some steps deep."""
    place = known.setdefault
    types = [place(("type", name), len(known)) for name in snapshot.types]
    labels = {
        each: each if kind_of(each) != PLAIN else place(("step", snapshot.step_text(each)), len(known)) << 4
        for each in set(snapshot.label)
    }
    values = {each: snapshot.value_text(node) for node, each in enumerate(snapshot.value)}
    signs = [
        place((types[kind], values[value]), len(known))
        for kind, value in zip(snapshot.type, snapshot.value, strict=True)
    ]
    steps = [labels[each] for each in snapshot.label]
    ends = list(snapshot.first_edge)
    for _ in range(ROUNDS):
        held = [signs[target] for target in snapshot.target]
        signs = [
            signs[node]
            if ends[node] == ends[node + 1]
            else place(
                (
                    signs[node],
                    tuple(steps[ends[node] : ends[node + 1]][:MOST_EDGES]),
                    tuple(held[ends[node] : ends[node + 1]][:MOST_EDGES]),
                ),
                len(known),
            )
            for node in range(len(snapshot))
        ]
    return signs
