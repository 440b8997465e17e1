"""The messages of a group as arrows between events, found by their nearness to a cut: of many, only a few are drawn."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from heapq import nlargest
from typing import NamedTuple

from replaydbg.distributed.channel_states import ChannelHistory
from replaydbg.distributed.cuts import MOST_EVENTS, Cut
from replaydbg.distributed.matching.columns import NEVER
from replaydbg.distributed.space_time import DiagramArrow, DiagramEvent, EventKind

MOST_ARROWS = 4_000_000
"""Arrows of which there is a table: each takes 32 bytes."""

_EVERY = 20_000
"""Pieces of messages after which `idle` is called."""


class ArrowOfMessage(NamedTuple):
    """Bytes of one send that one process received, as an arrow."""

    history: int
    """The index of its channel."""
    send: int
    """The index of the send; an open one counts on from those that ended."""
    receive: int | None
    """The index of the first receive that took some of these bytes; None: nobody did."""
    length: int
    certainty: int
    arrow: DiagramArrow


class NearbyArrows(NamedTuple):
    """The arrows around a cut."""

    messages: list[ArrowOfMessage]
    """Those that do not cross the cut."""
    starts: list[int]
    """The processes whose starts are near it."""
    earlier: dict[int, int]
    """For each process, how many of its events come before those."""
    later: dict[int, int]


class FlyingArrows(NamedTuple):
    """The messages in flight in a cut."""

    messages: list[ArrowOfMessage]
    """The last ones, in the order in which they were sent."""
    total: int
    """How many there are with all others."""
    states: dict[int, tuple[int, int]]
    """For each channel, by its index, the number of sends of which bytes were in flight, and of these bytes."""


class MessageArrows:
    """The arrows of all messages from one process to another, and of all starts of processes."""

    def __init__(
        self,
        histories: Sequence[ChannelHistory],
        starts: Mapping[int, DiagramArrow],
        idle: Callable[[], None] = lambda: None,
    ) -> None:
        """Build the table; `starts` has the arrow to each started process. `idle` is called often."""
        self._histories, self._starts = histories, dict(starts)
        self._history, self._segment = array("I"), array("I")
        self._lanes: defaultdict[int, tuple[array[int], array[int]]] = defaultdict(lambda: (array("Q"), array("I")))
        """For each process its positions, and the arrow of each: those after the messages are starts."""
        self.is_complete = True
        """Whether the table has all arrows."""
        for number, history in enumerate(histories):
            self._add(number, history, idle)
        for at, arrow in enumerate(self._starts.values(), len(self._segment)):
            for end in arrow:
                if end is not None:
                    self._add_end(end.process, end.position, at)
        self._lanes = defaultdict(
            self._lanes.default_factory, {each: _sorted(*lane) for each, lane in self._lanes.items()}
        )

    def _add(self, number: int, history: ChannelHistory, idle: Callable[[], None]) -> None:
        found = history.found
        sends, receives, segments = found.sends, found.receives, found.segments
        senders = [*sends.member, *(index for index, _ in sends.open)]
        begun = [*sends.begun, *(sends.members[index].transfers.begun[row] for index, row in sends.open)]
        numbers = [member.process for member in sends.members]
        # In a chain the pieces of a message are next to each other.
        is_chain = sends.is_chain and receives.is_chain
        seen: set[tuple[int, int]] = set()
        last = None
        for at, (send, receive) in enumerate(zip(segments.send, segments.receive, strict=True)):
            if not at % _EVERY:
                idle()
            key = send, receives.member[receive]
            if key == last or senders[send] == key[1]:
                continue
            last = key
            if not is_chain:
                if key in seen:
                    continue
                seen.add(key)
            if len(self._segment) == MOST_ARROWS:
                self.is_complete = False
                return
            self._add_end(numbers[senders[send]], min(begun[send], MOST_EVENTS) + 1, len(self._segment))
            self._add_end(numbers[key[1]], receives.event[receive], len(self._segment))
            self._history.append(number)
            self._segment.append(at)

    def _add_end(self, process: int, position: int, arrow: int) -> None:
        positions, arrows = self._lanes[process]
        positions.append(position)
        arrows.append(arrow)

    def near(self, cut: Cut, most: int) -> NearbyArrows:
        """Return the arrows of the `most` events of each process before a cut, and of as many after it."""
        chosen: dict[int, None] = {}
        earlier, later = {}, {}
        for process, position in sorted(cut.items()):
            positions, arrows = self._lanes[process]
            at = bisect_right(positions, position)
            first, last = max(at - most, 0), min(at + most, len(positions))
            chosen.update(dict.fromkeys(arrows[first:last]))
            earlier[process], later[process] = first, len(positions) - last
        count = len(self._segment)
        messages = [self._message(each) for each in sorted(chosen) if each < count]
        processes = list(self._starts)
        return NearbyArrows(
            [each for each in messages if not _crosses(each.arrow, cut)],
            [processes[each - count] for each in sorted(chosen) if each >= count],
            earlier,
            later,
        )

    def _message(self, number: int) -> ArrowOfMessage:
        place = self._history[number]
        at = self._segment[number]
        segments = self._histories[place].found.segments
        send, receive = segments.send[at], segments.receive[at]
        member = self._histories[place].found.receives.member
        length = 0
        for each in range(at, len(segments)):
            if segments.send[each] != send:
                break
            if member[segments.receive[each]] == member[receive]:
                length += segments.length[each]
        return self._arrow(place, send, receive, length, segments.certainty[at])

    def _arrow(self, place: int, send: int, receive: int | None, length: int, certainty: int) -> ArrowOfMessage:
        found = self._histories[place].found
        index, row = found.sends.place(send)
        member = found.sends.members[index]
        begun = min(member.transfers.begun[row], MOST_EVENTS)
        source = DiagramEvent(member.process, begun + 1, member.transfers.ticket[row], EventKind.SEND)
        target = None
        if receive is not None:
            index, row = found.receives.place(receive)
            member = found.receives.members[index]
            columns = member.transfers
            target = DiagramEvent(member.process, columns.event[row], columns.ticket[row], EventKind.RECEIVE)
        return ArrowOfMessage(place, send, receive, length, certainty, DiagramArrow(source, target))

    def in_flight(self, cut: Cut, most: int, idle: Callable[[], None] = lambda: None) -> FlyingArrows:
        """Return what was in flight in a cut: an arrow for each send and each process that received bytes of it later.

        What nobody received is an arrow, too. Only the `most` last ones by the group's clock are made.
        """
        states, total = {}, 0
        last: list[tuple[int, int, int, list[int]]] = []
        for place, history in enumerate(self._histories):
            if not history.found.channel.receivers:
                continue
            found = history.found
            parts: dict[tuple[int, int], list[int]] = {}
            for at, part in enumerate(history.in_flight(cut)):
                if not at % _EVERY:
                    idle()
                receiver = found.receives.member[part.receive] if part.receive is not None else -1
                first = part.receive if part.receive is not None else -1
                known = parts.setdefault((part.send, receiver), [0, 0, first])
                known[0] += part.length
                known[1] = max(known[1], part.certainty)
            states[place] = len({send for send, _ in parts}), sum(each[0] for each in parts.values())
            total += len(parts)
            tickets = found.sends.ticket
            count = len(tickets)
            # One that had not ended is as late as can be.
            timed = ((tickets[send] if send < count else NEVER, place, send, each) for (send, _), each in parts.items())
            last = nlargest(most, [*last, *timed])
        arrows = [
            self._arrow(place, send, first if first >= 0 else None, length, certainty)
            for _, place, send, (length, certainty, first) in reversed(last)
        ]
        return FlyingArrows(arrows, total, states)

    def neighbour(self, process: int, position: int, *, is_later: bool) -> int | None:
        """Return the next position of a process at which an arrow begins or ends, or the one before; None: none."""
        positions = self._lanes[process][0]
        if is_later:
            at = bisect_right(positions, position)
            return positions[at] if at < len(positions) else None
        at = bisect_left(positions, position)
        return positions[at - 1] if at else None


def _crosses(arrow: DiagramArrow, cut: Cut) -> bool:
    source, target = arrow
    is_sent = source.position <= cut[source.process]
    return is_sent and (target is None or target.position > cut[target.process])


def _sorted(positions: array[int], arrows: array[int]) -> tuple[array[int], array[int]]:
    order = sorted(range(len(positions)), key=positions.__getitem__)
    return array("Q", map(positions.__getitem__, order)), array("I", map(arrows.__getitem__, order))
