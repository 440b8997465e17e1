"""Walks over the graph of a snapshot, in Python: the tree of the best paths from the roots, and dominators.

All are iterative, since a linked list may be a million objects long, and take plain columns: the edges of node `i` are
`first_edge[i]` to `first_edge[i + 1]`, and `target` is the node to which each leads. The root above all roots is node
`n`, where `n` is the number of nodes. An edge that does not count must be a loop: loops change nothing here, and the
numbers of the other edges stay the same.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import compress

from replaydbg.heap.labels import PLAIN, REFERENT, WEAK, kind_of, number_of
from replaydbg.heap.snapshot import Strings

UNREACHED = 0xFFFFFFFF
"""In a column of nodes: no node."""

_UNKNOWN = 0xFF


def strong(first_edge: Sequence[int], target: Sequence[int], label: Sequence[int]) -> array[int]:
    """Return the targets of all edges, where weak edges are turned into loops."""
    targets = array("I", target)
    node = 0
    for edge in (edge for edge, each in enumerate(label) if each & WEAK):
        while first_edge[node + 1] <= edge:
            node += 1
        targets[edge] = node
    return targets


def tree(
    first_edge: Sequence[int], target: Sequence[int], label: Sequence[int], roots: Sequence[int], preferred: int
) -> tuple[array[int], array[int]]:
    """Return for each node its parent on the best path from a root, and the edge from there.

    The best path has the fewest steps without a name, labels of the kind REFERENT; of those it is the shortest.

    Nodes that the first `preferred` roots reach at all are reached from them, however near they are to the others. The
    parent of a root is `n`, and its edge is the index of the root in `roots`; an unreachable node has the parent
    UNREACHED. Of several such paths it is the first in the order of roots and edges.
    """
    count = len(first_edge) - 1
    firsts, targets = list(first_edge), list(target)
    nameless = [kind_of(each) == REFERENT for each in label]
    parent, via = [UNREACHED] * count, [0] * count

    def add_targets(queue: list[int], node: int, *, is_nameless: bool) -> None:
        for edge in range(firsts[node], firsts[node + 1]):
            to = targets[edge]
            if parent[to] == UNREACHED and nameless[edge] == is_nameless:
                parent[to], via[to] = node, edge
                queue.append(to)

    for places in (range(min(preferred, len(roots))), range(preferred, len(roots))):
        queue: list[int] = []
        for place in places:
            root = roots[place]
            if parent[root] == UNREACHED:
                parent[root], via[root] = count, place
                queue.append(root)
        at = 0
        while at < len(queue):
            begin = at
            while at < len(queue):
                add_targets(queue, queue[at], is_nameless=False)
                at += 1
            for node in queue[begin:at]:
                add_targets(queue, node, is_nameless=True)
    return array("I", parent), array("I", via)


def dominators(first_edge: Sequence[int], target: Sequence[int], roots: Sequence[int]) -> tuple[array[int], array[int]]:
    """Return the immediate dominator of each node, and the reached nodes in an order in which dominators come first.

    A node that no other node alone holds has the dominator `n`; an unreachable one has UNREACHED. This is the algorithm
    of T. Lengauer and R. E. Tarjan, "A fast algorithm for finding dominators in a flowgraph", ACM Transactions on
    Programming Languages and Systems 1 (1979) 121-141, in its simple version, O(m log n): that of Cooper, Harvey and
    Kennedy is as fast on most heaps and quadratic on some.
    """
    count = len(first_edge) - 1
    order, parent = _depth_first(first_edge, target, roots)
    found = _immediate(order, parent, _predecessors(order, first_edge, target, roots))
    dominator = array("I", [UNREACHED]) * count
    for number in range(1, len(order)):
        dominator[order[number]] = order[found[number]]
    return dominator, array("I", order[1:])


def _depth_first(first_edge: Sequence[int], target: Sequence[int], roots: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the nodes in preorder, the root above all first, and for each the number of its parent in that order."""
    count = len(first_edge) - 1
    firsts, targets = list(first_edge), list(target)
    ends = firsts[1:]
    seen = bytearray(count)
    order, parent = [count], [0]
    for root in roots:
        if seen[root]:
            continue
        seen[root] = 1
        order.append(root)
        parent.append(0)
        stack, numbers = [root], [len(order) - 1]
        while stack:
            node = stack[-1]
            for edge in range(firsts[node], ends[node]):
                to = targets[edge]
                if not seen[to]:
                    seen[to] = 1
                    firsts[node] = edge + 1
                    order.append(to)
                    parent.append(numbers[-1])
                    stack.append(to)
                    numbers.append(len(order) - 1)
                    break
            else:
                stack.pop()
                numbers.pop()
    return order, parent


def _predecessors(
    order: Sequence[int], first_edge: Sequence[int], target: Sequence[int], roots: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Return the reversed edges, as columns again, where nodes are their numbers in preorder."""
    count = len(first_edge) - 1
    number = [0] * (count + 1)
    for place, node in enumerate(order):
        number[node] = place
    firsts = [0] * (len(order) + 1)
    for root in roots:
        firsts[number[root]] += 1
    for node in order[1:]:
        for to in target[first_edge[node] : first_edge[node + 1]]:
            firsts[number[to]] += 1
    total = 0
    for place, each in enumerate(firsts):
        total += each
        firsts[place] = total
    sources = [0] * total
    for root in roots:
        firsts[number[root]] -= 1
    for place in range(1, len(order)):
        node = order[place]
        for to in target[first_edge[node] : first_edge[node + 1]]:
            at = number[to]
            firsts[at] -= 1
            sources[firsts[at]] = place
    return firsts, sources


def _immediate(order: Sequence[int], parent: list[int], predecessors: tuple[list[int], list[int]]) -> list[int]:
    """Return the immediate dominators; all nodes are given by their numbers in preorder."""
    firsts, sources = predecessors
    size = len(order)
    semi = list(range(size))
    label = list(range(size))
    ancestor = [-1] * size  # not linked yet
    dominator = [0] * size
    bucket, following = [0] * size, [0] * size
    for node in range(size - 1, 0, -1):
        least = parent[node]
        for source in sources[firsts[node] : firsts[node + 1]]:
            if source > node:
                source = semi[_evaluate(source, ancestor, label, semi)]
            if source < least:
                least = source
        semi[node] = least
        following[node] = bucket[least]
        bucket[least] = node
        above = parent[node]
        ancestor[node] = above
        each = bucket[above]
        while each:
            best = _evaluate(each, ancestor, label, semi)
            dominator[each] = best if semi[best] < semi[each] else above
            each = following[each]
        bucket[above] = 0
    for node in range(1, size):
        if dominator[node] != semi[node]:
            dominator[node] = dominator[dominator[node]]
    return dominator


def _evaluate(node: int, ancestor: list[int], label: list[int], semi: list[int]) -> int:
    """Return the linked ancestor of `node` (or itself) with the least semidominator, and compress the path."""
    if ancestor[node] < 0:
        return node
    path = []
    at = node
    while ancestor[ancestor[at]] >= 0:
        path.append(at)
        at = ancestor[at]
    for at in reversed(path):
        above = ancestor[at]
        if semi[label[above]] < semi[label[at]]:
            label[at] = label[above]
        ancestor[at] = ancestor[above]
    return label[node]


def retained(dominator: Sequence[int], order: Sequence[int], size: Sequence[int]) -> array[int]:
    """Return for each node the bytes that freeing it would free: its own and those of all that it dominates.

    An unreachable node has 0. The last entry, for node `n`, is the sum of all.
    """
    total = [0] * (len(size) + 1)
    for node in order:
        total[node] = size[node]
    for node in reversed(order):
        total[dominator[node]] += total[node]
    return array("Q", total)


def retained_by(
    dominator: Sequence[int],
    order: Sequence[int],
    group: Sequence[int],
    retained: Sequence[int],
    chosen: Sequence[int],
    groups: int,
) -> array[int]:
    """Return for each group the bytes that freeing its chosen nodes would free. No byte counts twice in one group."""
    count = len(dominator)
    children: list[list[int]] = [[] for _ in range(count + 1)]
    for node in reversed(order):
        children[dominator[node]].append(node)
    total, opened = [0] * groups, [0] * groups
    stack = children[count]
    while stack:
        node = stack.pop()
        if node < 0:
            opened[group[~node]] -= 1
            continue
        if chosen[node]:
            own = group[node]
            if not opened[own]:
                total[own] += retained[node]
            opened[own] += 1
            stack.append(~node)
        stack.extend(children[node])
    return array("Q", total)


def missing(column: Sequence[int]) -> bytes:
    """Return for each entry of a column whether it is UNREACHED."""
    return bytes(map(UNREACHED.__eq__, column))


def census(group: Sequence[int], size: Sequence[int], chosen: bytes, groups: int) -> tuple[array[int], array[int]]:
    """Return the number of chosen nodes in each group, and their bytes."""
    counts, sizes = array("Q", [0]) * groups, array("Q", [0]) * groups
    for node in compress(range(len(chosen)), chosen):
        counts[group[node]] += 1
        sizes[group[node]] += size[node]
    return counts, sizes


def edges_to(target: Sequence[int], chosen: bytes) -> array[int]:
    """Return the edges that lead to chosen nodes."""
    return array("I", compress(range(len(target)), map(chosen.__getitem__, target)))


def tops(dominator: Sequence[int], chosen: bytes) -> array[int]:
    """Return the chosen nodes that no other chosen node dominates."""
    is_chosen = chosen + b"\0"  # the last one is the root above all, which is never chosen
    return array(
        "I",
        (
            node
            for node in compress(range(len(chosen)), chosen)
            if dominator[node] != UNREACHED and not is_chosen[dominator[node]]
        ),
    )


def origins(
    tree: tuple[Sequence[int], Sequence[int]],
    label: Sequence[int],
    type: Sequence[int],
    strings: Strings,
    of_root: bytes,
    of_type: bytes,
) -> bytes:
    """Return the origin of each node, as a number, derived from those of roots and types; 0: the program's own.

    Attributes of a library's objects belong to that library; items of its containers do not.
    """
    parent, via = tree
    count = len(parent)
    found = bytearray(b"\xff") * count
    for node in range(count):
        way = []
        at = node
        while found[at] == _UNKNOWN:
            if parent[at] in (UNREACHED, count):
                found[at] = of_root[via[at]] if parent[at] == count else 0
                break
            way.append(at)
            at = parent[at]
        origin = found[at]
        for below in reversed(way):
            if origin == 0 and is_attribute(strings, label[via[below]]):
                origin = of_type[type[parent[below]]]
            found[below] = origin
    return bytes(found)


def is_attribute(strings: Strings, label: int) -> bool:
    """Whether a step is an attribute, or a variable of a module or a call."""
    return kind_of(label) == PLAIN and strings.raw(number_of(label))[:1] == b"."
