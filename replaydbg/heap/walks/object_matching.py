"""Match the objects of two snapshots: by identity within a run, by paths and content between two runs."""

from __future__ import annotations

from array import array
from collections import defaultdict

from replaydbg.heap.snapshot import FRAME_TYPE, Snapshot, Strings
from replaydbg.heap.walks.graph_walks import UNREACHED
from replaydbg.heap.walks.kernel import Column, Kernel
from replaydbg.heap.walks.object_comparison import Columns, Matching


def is_one_run(before: Snapshot, after: Snapshot) -> bool:
    """Whether the addresses of two snapshots belong to one process, so that identity is meaningful."""
    return before.taken.run != "" and before.taken.run == after.taken.run


def match(before: Snapshot, after: Snapshot, kernel: Kernel, *, by_identity: bool) -> Matching:
    """Return which nodes are the same objects, and which types and texts are the same."""
    types = kernel.translate(Strings.of(before.types), Strings.of(after.types))
    texts = _texts(before.strings, after.strings, kernel)
    if not by_identity:
        roots = _root_pairs(before, after)
        found = kernel.match_paths(Columns.of(before), Columns.of(after), types, texts, roots)
        return Matching(*found, types, texts)
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
    """Return the label of a frame without its current line."""
    return label.rpartition(" line ")[0] or label


def _part_frames(before: Snapshot, after: Snapshot, to_after: Column, to_before: Column) -> None:
    """Frames are not objects: one at the address of another one is the same only if it runs the same function."""
    frames = {root.node: frame_name(root.label) for root in before.roots if before.type_name(root.node) == FRAME_TYPE}
    others = {root.node: frame_name(root.label) for root in after.roots if after.type_name(root.node) == FRAME_TYPE}
    for node, name in frames.items():
        other = to_after[node]
        if other != UNREACHED and others.get(other) != name:
            to_after[node] = to_before[other] = UNREACHED


def _root_pairs(before: Snapshot, after: Snapshot) -> Column:
    """Return the nodes of roots of one name, before and after, in alternation."""
    names: dict[str, list[int]] = defaultdict(list)
    for root in after.roots:
        names[frame_name(root.label)].append(root.node)
    found = array("I")
    for root in before.roots:
        others = names.get(frame_name(root.label))
        if others:
            found.extend((root.node, others.pop(0)))
    return found
