"""Who can go on in a wait-for graph, and who never can unless somebody outside acts.

A wait has alternatives, of which one is enough (an or-wait); an alternative needs all of several nodes (an and-wait).
With or-waits alone those that cannot go on form a knot, with and-waits alone they reach a cycle (E. Knapp, Deadlock
Detection in Distributed Databases, ACM Computing Surveys 19, 1987; the general case is his AND-OR model).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)

Alternatives = Iterable[Collection[Node]]
"""A node waits for one of these, each a set of nodes that all have to act; an empty set: it can go on."""


def stuck(waits: Mapping[Node, Alternatives[Node]]) -> set[Node]:
    """Return the nodes that cannot go on, whatever the others do; a node that is missing in `waits` can.

    Each alternative is looked at once for each of its nodes.
    """
    missing: list[int] = []
    owner: list[Node] = []
    needed_by: dict[Node, list[int]] = {}
    ready: list[Node] = []
    able: set[Node] = set()
    for node, alternatives in waits.items():
        for each in alternatives:
            needed = {other for other in each if other in waits}
            for other in needed:
                needed_by.setdefault(other, []).append(len(missing))
            missing.append(len(needed))
            owner.append(node)
            if not needed:
                ready.append(node)
    while ready:
        node = ready.pop()
        if node in able:
            continue
        able.add(node)
        for number in needed_by.get(node, ()):
            missing[number] -= 1
            if not missing[number]:
                ready.append(owner[number])
    return set(waits) - able


def cores(waits: Mapping[Node, Alternatives[Node]], nodes: Collection[Node]) -> list[set[Node]]:
    """Return the cycles and knots among nodes that cannot go on: those that wait only for each other.

    Others among the nodes only wait for these. The smallest first.
    """
    following = {node: {other for each in waits[node] for other in each if other in nodes} for node in nodes}
    reached = {node: _reached(following, node) for node in nodes}
    found: list[set[Node]] = []
    for node in nodes:
        if all(node in reached[other] for other in reached[node]) and node in reached[node]:
            component = set(reached[node])
            if component not in found:
                found.append(component)
    return sorted(found, key=len)


def _reached(following: Mapping[Node, Collection[Node]], start: Node) -> set[Node]:
    """Return the nodes to which a path of at least one step leads."""
    seen: set[Node] = set()
    pending = list(following[start])
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            pending += following[node]
    return seen
