"""The space-time diagram of a group around a cut: messages near it and in flight in it, and the state of channels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from replaydbg.distributed.edges import HappensBefore
from replaydbg.distributed.happens_before import edges_without_bytes
from replaydbg.distributed.matching.channels import MessageChannel
from replaydbg.distributed.matching.segments import AMBIGUOUS, SURE
from replaydbg.distributed.message_arrows import ArrowOfMessage, MessageArrows, NearbyArrows
from replaydbg.distributed.space_time import DiagramArrow, DiagramEvent, EventKind, Layout, lay_out
from replaydbg.groups.causality import program_starts
from replaydbg.groups.group_cuts import GroupCut, GroupCuts
from replaydbg.groups.messages import CERTAINTIES, MOST_EVENTS, MessageEnd

MOST_IN_FLIGHT = 40
"""Messages in flight that are drawn: those that were sent last."""


class DrawnMessage(NamedTuple):
    """An arrow of the diagram: bytes of one send that one process received, or the start of a process."""

    kind: str
    """The kind of its channel, or how the process was started."""
    channel: int
    """The number of its channel; 0: it is a start."""
    source: MessageEnd
    target: MessageEnd | None
    """The first receive of these bytes, or the beginning of the process; None: nobody received them."""
    to: tuple[int, ...]
    """The processes that could receive it."""
    length: int
    certainty: str
    """One of CERTAINTIES."""
    is_whole: bool
    """Whether these are all bytes of the send."""
    is_start: bool
    is_in_flight: bool


class CutChannel(NamedTuple):
    """A channel between recorded processes in a cut."""

    channel: MessageChannel
    messages: int
    """Number of sends of which bytes are in flight."""
    length: int
    """Number of bytes in flight."""


@dataclass(frozen=True, slots=True)
class SpaceTimeDiagram:
    """The drawing of a cut."""

    cut: GroupCut
    last: Mapping[int, int]
    """The last position of each process."""
    layout: Layout
    messages: tuple[DrawnMessage, ...]
    """The messages of the layout's arrows."""
    states: tuple[CutChannel, ...]
    earlier: int
    """Number of events that come before those that are drawn."""
    later: int
    undrawn: int
    """Number of messages in flight that are not drawn."""
    is_complete: bool
    """Whether all messages of the group are known here."""

    @property
    def contradictions(self) -> int:
        """Number of messages that cannot be drawn, because they were received before they were sent."""
        return self.layout.arrows.count(None)

    @property
    def flying(self) -> list[int]:
        """The indexes of the messages in flight, in the order in which they were sent."""
        return [at for at, each in enumerate(self.messages) if each.is_in_flight]


class SpaceTime:
    """The diagrams of a group. The first one reads and matches all channels, later ones look around their cut."""

    def __init__(self, cuts: GroupCuts, idle: Callable[[], None] = lambda: None) -> None:
        """Take the cuts of a group; `idle` is called often during long work, and may raise."""
        self.cuts, self._idle = cuts, idle

    def match(self) -> None:
        """Match all channels, if that is not done: otherwise the first cut does it, without a pause."""
        matching = self.cuts.opened.matching
        for channel in matching.channels:
            self._idle()
            matching.match(channel)

    @cached_property
    def table(self) -> MessageArrows:
        """All arrows."""
        self.match()
        return MessageArrows(self.cuts.histories, self._starts, self._idle)

    @cached_property
    def first(self) -> dict[int, int]:
        """The first position of each process: a forked one shares earlier events with its parent."""
        return {member.process: max(member.branch, 1) for member in self.cuts.opened.matching.members}

    @cached_property
    def _starts(self) -> dict[int, DiagramArrow]:
        """The arrow to each process that a recorded one started."""
        opened = self.cuts.opened
        members = opened.matching.members
        forks = [(each.parent, each.branch, each.process) for each in members if each.branch]
        programs = [(each.process, each.event, each.child) for each in program_starts(opened)]
        return {
            child: DiagramArrow(DiagramEvent(parent, event, 0, EventKind.SEND), self._begin(child))
            for parent, event, child in (*forks, *programs)
            # Larger numbers are those of a forged recording.
            if parent in self.first and parent != child and max(event, self.first[child]) < MOST_EVENTS
        }

    def _begin(self, process: int) -> DiagramEvent:
        return DiagramEvent(process, self.first[process], 0, EventKind.BEGIN)

    def _end(self, process: int) -> DiagramEvent:
        return DiagramEvent(process, max(self.cuts.finder.last[process], self.first[process]), 0, EventKind.END)

    def around(self, cut: GroupCut, most: int) -> SpaceTimeDiagram:
        """Return the diagram of a cut with the `most` events of each process before and after it, from 1 on."""
        near = self.table.near(cut.positions, most)
        flying = self.table.in_flight(cut.positions, MOST_IN_FLIGHT, self._idle)
        shown = flying.messages
        arrows = [*(each.arrow for each in (*near.messages, *shown)), *(self._starts[each] for each in near.starts)]
        ends = tuple(self._ends(near))
        layout = lay_out(cut.positions, arrows, cut.positions, ends, self._waits(arrows, ends))
        messages = (
            *(self._message(each, is_in_flight=False) for each in near.messages),
            *(self._message(each, is_in_flight=True) for each in self._with_sites(shown)),
            *(self._start(each) for each in near.starts),
        )
        return SpaceTimeDiagram(
            cut,
            self.cuts.finder.last,
            layout,
            messages,
            tuple(self._states(flying.states)),
            sum(near.earlier.values()),
            sum(near.later.values()),
            flying.total - len(shown),
            self.table.is_complete,
        )

    def _ends(self, near: NearbyArrows) -> Iterator[DiagramEvent]:
        """Yield the beginnings and ends of processes that come right before, or after, what is drawn."""
        for process in self.first:
            if not near.earlier[process]:
                yield self._begin(process)
            if not near.later[process]:
                yield self._end(process)

    @cached_property
    def _waited(self) -> list[HappensBefore]:
        """Which process waited for the end of which."""
        edges = edges_without_bytes(self.cuts.opened.matching.members)
        return [each for each in edges if each.kind == "end"]

    def _waits(self, arrows: Iterable[DiagramArrow], ends: Iterable[DiagramEvent]) -> list[DiagramArrow]:
        """Return the order of ends of processes, and of what is drawn of those that waited for them.

        An end has no ticket: without it, a process could end in the diagram before one for which it waited.
        """
        known = set(ends)
        lanes: dict[int, list[DiagramEvent]] = {}
        for event in known.union(event for arrow in arrows for event in arrow if event is not None):
            lanes.setdefault(event.process, []).append(event)
        found = []
        for edge in self._waited:
            end = self._end(edge.process)
            later = [each for each in lanes.get(edge.to_process, ()) if each.position >= edge.to_event]
            if end in known and later:
                found += [DiagramArrow(end, each) for each in later]
        return found

    def _with_sites(self, flying: list[ArrowOfMessage]) -> list[ArrowOfMessage]:
        """Read the sites of messages at once."""
        places = []
        for each in flying:
            found = self.cuts.histories[each.history].found
            ends = [found.sends.place(each.send)]
            ends += [found.receives.place(each.receive)] if each.receive is not None else []
            members = [(found.sends.members[index], row) for index, row in ends]
            places += [(member.process, member.transfers.event[row]) for member, row in members]
        self.cuts.opened.read_sites(places)
        return flying

    def _message(self, each: ArrowOfMessage, *, is_in_flight: bool) -> DrawnMessage:
        found = self.cuts.histories[each.history].found
        is_doubted = not is_in_flight and (found.early is not None or bool(found.channel.doubt))
        return DrawnMessage(
            found.channel.kind,
            found.channel.number,
            self._message_end(*found.sends.place(each.send), is_read=is_in_flight),
            self._message_end(*found.receives.place(each.receive), is_read=is_in_flight)
            if each.receive is not None
            else None,
            found.channel.receivers,
            each.length,
            CERTAINTIES[AMBIGUOUS if is_doubted and each.certainty == SURE else each.certainty],
            each.send < len(found.sends) and each.length == found.sends.length[each.send],
            is_start=False,
            is_in_flight=is_in_flight,
        )

    def _message_end(self, index: int, row: int, *, is_read: bool) -> MessageEnd:
        opened = self.cuts.opened
        member = opened.matching.members[index]
        event, begun = member.transfers.event[row], member.transfers.begun[row]
        site = opened.site(member.process, event) if is_read and event else None
        text = opened.line(member.process, site) if site is not None else ""
        return MessageEnd(member.process, event, begun, site, text)

    def _start(self, process: int) -> DrawnMessage:
        source = self._starts[process].source
        how = next(each.how for each in self.cuts.opened.group.processes if each.number == process)
        parent = MessageEnd(source.process, source.position, source.position - 1, None, "")
        child = MessageEnd(process, self.first[process], self.first[process] - 1, None, "")
        return DrawnMessage(
            how, 0, parent, child, (process,), 0, CERTAINTIES[0], is_whole=True, is_start=True, is_in_flight=False
        )

    def _states(self, flying: Mapping[int, tuple[int, int]]) -> Iterator[CutChannel]:
        for place, (messages, length) in flying.items():
            yield CutChannel(self.cuts.histories[place].found.channel, messages, length)

    def step(self, process: int, position: int, by: int) -> int:
        """Return the position of a process `by` events of the diagram later, or earlier if `by` is negative.

        0 is its position before it begins.
        """
        for _ in range(abs(by)):
            following = self._following(process, position) if by > 0 else self._preceding(process, position)
            if following == position:
                break
            position = following
        return position

    def _following(self, process: int, position: int) -> int:
        first, last = self.first[process], self._end(process).position
        if position < first:
            return first
        found = self.table.neighbour(process, position, is_later=True)
        return max(position, min(found, last) if found is not None else last)

    def _preceding(self, process: int, position: int) -> int:
        first = self.first[process]
        if position <= first:
            return 0
        found = self.table.neighbour(process, position, is_later=False)
        return max(found, first) if found is not None else first
