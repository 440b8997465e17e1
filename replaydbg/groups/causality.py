"""Order the events of the processes of a group, and compute their vector clocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from replaydbg.distributed.causal_order import CausalOrder
from replaydbg.distributed.cuts import Requirement
from replaydbg.distributed.edges import HappensBefore
from replaydbg.distributed.happens_before import ProgramStart, edges_between, edges_without_bytes
from replaydbg.groups.opened_group import OpenedGroup


def program_starts(opened: OpenedGroup) -> list[ProgramStart]:
    """Return how recorded processes were started, except by a fork.

    The starter is the nearest ancestor that is recorded: a shell between the two has no events.
    """
    rows = {each.number: each for each in opened.group.processes}
    recorded = {member.process: member for member in opened.matching.members}
    found = []
    for number, member in recorded.items():
        row = rows[number]
        if member.branch:
            continue
        while row.parent in rows and row.parent not in recorded and row.parent < row.number:
            row = rows[row.parent]
        if row.parent in recorded and row.event > 0:
            found.append(ProgramStart(row.parent, row.event, number, row.how == "exec"))
    return found


def bare_edges(opened: OpenedGroup) -> list[HappensBefore]:
    """Return the edges without bytes (starts, ends, signals, semaphores, files), sorted by their later event."""
    found = edges_without_bytes(opened.matching.members, program_starts(opened))
    return sorted(found, key=lambda edge: (edge.to_process, edge.to_event, edge.process, edge.event, edge.kind))


def causal_order(opened: OpenedGroup, more: Iterable[Requirement] = ()) -> CausalOrder:
    """Return the order of all events, from what is certain and from `more`: matches all channels."""
    edges = edges_between(opened.matching, program_starts(opened))
    branches = {each.process: (each.parent, each.branch) for each in opened.matching.members if each.branch}
    certain = (edge for edge in edges if edge.is_certain)
    return CausalOrder(chain(certain, _required(opened, more)), branches)


def _required(opened: OpenedGroup, requirements: Iterable[Requirement]) -> Iterator[HappensBefore]:
    """Yield what the events of a process need as edges: the close of a stream, and the end that it led to."""
    last = {member.process: member.events for member in opened.matching.members}
    for each in (each for each in requirements if each.is_certain):
        for event, dependent in zip(each.events, each.dependents, strict=True):
            if 0 < event <= last[each.source]:  # behind the last one, it never was
                yield HappensBefore(each.source, event, each.target, dependent, True, "stream", event - 1)


def is_order_known(opened: OpenedGroup, more: Iterable[Requirement] = ()) -> bool:
    """Whether no edge is uncertain, so that two events without an order are concurrent. Files always are: left out."""
    edges = edges_between(opened.matching, program_starts(opened))
    is_certain = all(edge.is_certain or edge.kind == "file" for edge in edges) and all(each.is_certain for each in more)
    return not opened.problems and is_certain
