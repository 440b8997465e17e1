"""Lay out a space-time diagram: a lane for each process, an arrow for each message, a cut as a straight line.

A cut is consistent exactly if the lanes can be stretched so that a straight line divides what is in it from what is
not, and no arrow goes back across the line (F. Mattern, Virtual Time and Global States of Distributed Systems, 1989).
So the events on each side of the line are in the order of the group's clock, and those of the cut are all before it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from enum import IntEnum
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from replaydbg.distributed.cuts import Cut


class EventKind(IntEnum):
    """The kind of an event of the diagram. Of those at one position and one time, the lesser comes first."""

    BEGIN = 0
    """The process begins."""
    SEND = 1
    """It sends, or starts another process."""
    RECEIVE = 2
    END = 3


class DiagramEvent(NamedTuple):
    """A point on the lane of a process."""

    process: int
    position: int
    """The least position of a cut that has it, from 1; of a send, the first event that ended after it began."""
    ticket: int
    """When it was, by the clock of the group; 0: unknown, it comes as early as it can."""
    kind: EventKind


class DiagramArrow(NamedTuple):
    """A message, or the start of a process."""

    source: DiagramEvent
    target: DiagramEvent | None
    """None: nobody received it."""


class PlacedArrow(NamedTuple):
    """The place of an arrow: indexes into the events of the diagram."""

    source: int
    target: int | None

    def crosses(self, line: int) -> bool:
        """Whether it crosses a line that has so many events before it."""
        return self.source < line and (self.target is None or self.target >= line)


class Layout(NamedTuple):
    """A diagram without sizes: time is the index of an event."""

    processes: tuple[int, ...]
    """The lanes."""
    events: tuple[DiagramEvent, ...]
    """All events in the order of time, each once."""
    line: int
    """The number of events before the line of the cut."""
    arrows: tuple[PlacedArrow | None, ...]
    """For each arrow its place; None: it would go back in time, because a recording contradicts itself."""


def lay_out(
    processes: Iterable[int],
    arrows: Sequence[DiagramArrow],
    cut: Cut,
    more: Iterable[DiagramEvent] = (),
    order: Sequence[DiagramArrow] = (),
) -> Layout:
    """Return the layout of arrows and of `more` events, with a cut that has a position for each process.

    `order` has arrows between these events that are not drawn, and yet go forward in time.
    """
    events = dict.fromkeys(more)
    for arrow in arrows:
        events[arrow.source] = None
        if arrow.target is not None:
            events[arrow.target] = None
    before = {each for each in events if each.position <= cut[each.process]}
    every = (*arrows, *order)
    ordered = _ordered(before, every) + _ordered(events.keys() - before, every)
    places = {each: at for at, each in enumerate(ordered)}
    return Layout(
        tuple(sorted(processes)), tuple(ordered), len(before), tuple(_placed(arrow, places) for arrow in arrows)
    )


def _placed(arrow: DiagramArrow, places: dict[DiagramEvent, int]) -> PlacedArrow | None:
    source, target = places[arrow.source], places[arrow.target] if arrow.target is not None else None
    return PlacedArrow(source, target) if target is None or source < target else None


def _on_lane(event: DiagramEvent) -> tuple[int, bool, bool, int, int]:
    """Return the order of the events of one process."""
    is_end, is_begin = event.kind is EventKind.END, event.kind is EventKind.BEGIN
    return event.position, is_end, not is_begin, event.ticket, event.kind


def _ordered(events: Iterable[DiagramEvent], arrows: Iterable[DiagramArrow]) -> list[DiagramEvent]:
    """Return events sorted topologically by lanes and arrows: of those that are possible the earliest by the clock.

    (A. B. Kahn, Topological sorting of large networks, CACM 5, 1962.) In a circle, the arrows are given up.
    """
    lanes: dict[int, deque[DiagramEvent]] = {}
    for event in sorted(events, key=_on_lane):
        lanes.setdefault(event.process, deque()).append(event)
    known = {event for lane in lanes.values() for event in lane}
    waits: dict[DiagramEvent, int] = dict.fromkeys(known, 0)
    leaving: defaultdict[DiagramEvent, list[DiagramEvent]] = defaultdict(list)
    for source, target in arrows:
        if source in known and target is not None and target in known:
            waits[target] += 1
            leaving[source].append(target)
    ready = [(lane[0].ticket, process) for process, lane in lanes.items() if not waits[lane[0]]]
    heapify(ready)
    found = []
    while lanes:
        process = heappop(ready)[1] if ready else min(lanes, key=lambda each: (lanes[each][0].ticket, each))
        lane = lanes[process]
        event = lane.popleft()
        found.append(event)
        released = []
        for target in leaving[event]:
            waits[target] -= 1
            other = lanes.get(target.process)
            if not waits[target] and target.process != process and other and other[0] == target:
                released.append(target)
        if not lane:
            del lanes[process]
        elif not waits[lane[0]]:
            released.append(lane[0])
        for each in released:
            heappush(ready, (each.ticket, each.process))
    return found
