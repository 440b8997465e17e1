"""Vector clocks of the processes of a group: which events had happened before an event, in all processes."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush

from replaydbg.distributed.edges import HappensBefore

BEFORE, AFTER, CONCURRENT, SAME = "before", "after", "concurrent", "same"

_NEVER = 1 << 65


class CausalOrder:
    """The order of the events of all processes that follows from edges between them.

    The clock of a process changes only where an edge ends. For each process and each other one the changes are kept: at
    which event, and up to which event of the other one.
    """

    def __init__(self, edges: Iterable[HappensBefore], branches: Mapping[int, tuple[int, int]] | None = None) -> None:
        """Compute the clocks; `branches` has the parent and the event of the fork of each forked process."""
        self._branches = branches or {}
        self._incoming: dict[int, list[HappensBefore]] = {}
        self._changes: dict[int, dict[int, tuple[list[int], list[int]]]] = {}
        for edge in edges:
            if edge.process != edge.to_process:
                self._incoming.setdefault(edge.to_process, []).append(edge)
        for each in self._incoming.values():
            each.sort(key=lambda edge: edge.to_event)
        self._next = dict.fromkeys(self._incoming, 0)
        self._compute()

    @property
    def unordered(self) -> list[HappensBefore]:
        """Edges that would make an event happen before itself: a matching error, or a forged recording."""
        return [edge for process, edges in self._incoming.items() for edge in edges[self._next[process] :]]

    def clock(self, process: int, event: int) -> dict[int, int]:
        """Return for each other process the last event that had begun before an event of `process` ended."""
        process, event = self._owner(process, event)
        return self._clock(process, event)

    def order(self, one: tuple[int, int], other: tuple[int, int]) -> str:
        """Return whether an event (process and number) came BEFORE or AFTER another one, or was CONCURRENT with it."""
        one, other = self._owner(*one), self._owner(*other)
        if one == other:
            return SAME
        if one[0] == other[0]:
            return BEFORE if one[1] < other[1] else AFTER
        if self._seen(*other, one[0]) >= one[1]:
            return BEFORE
        return AFTER if self._seen(*one, other[0]) >= other[1] else CONCURRENT

    def _owner(self, process: int, event: int) -> tuple[int, int]:
        """Return the process that an event belongs to: what comes before a fork is the parent's."""
        while process in self._branches:
            parent, fork = self._branches[process]
            if event >= fork or not 0 < parent < process:
                break
            process = parent
        return process, event

    def _clock(self, process: int, event: int) -> dict[int, int]:
        found = {}
        for other, (events, values) in self._changes.get(process, {}).items():
            at = bisect_right(events, event)
            if at:
                found[other] = values[at - 1]
        return found

    def _seen(self, process: int, event: int, other: int) -> int:
        events, values = self._changes.get(process, {}).get(other, ([], []))
        at = bisect_right(events, event)
        return values[at - 1] if at else 0

    # ---- computing: an edge is followed when the clock at its beginning is final ----

    def _settled(self, process: int) -> int:
        """Return the event before which the clock of a process is final."""
        edges, at = self._incoming.get(process, ()), self._next.get(process, 0)
        return edges[at].to_event if at < len(edges) else _NEVER

    def _compute(self) -> None:
        waiting: dict[int, list[tuple[int, int]]] = {}
        ready = deque(sorted(self._incoming))
        while ready:
            process = ready.popleft()
            edges = self._incoming[process]
            while (at := self._next[process]) < len(edges):
                edge = edges[at]
                if self._settled(edge.process) <= edge.after:
                    heappush(waiting.setdefault(edge.process, []), (edge.after, process))
                    break
                self._follow(edge)
                self._next[process] = at + 1
            held = waiting.get(process, [])
            while held and held[0][0] < self._settled(process):
                ready.append(heappop(held)[1])

    def _follow(self, edge: HappensBefore) -> None:
        clock = self._clock(edge.process, edge.after)
        clock[edge.process] = max(clock.get(edge.process, 0), edge.event)
        own = self._changes.setdefault(edge.to_process, {})
        for other, value in clock.items():
            if other == edge.to_process:
                continue
            events, values = own.setdefault(other, ([], []))
            if not values or values[-1] < value:
                events.append(edge.to_event)
                values.append(value)
