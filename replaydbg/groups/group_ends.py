"""The ends of channels that the processes of a group hold: which belong together, and who has them in a cut."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from functools import cache, cached_property

from replaydbg.distributed.channel_states import ChannelHistory
from replaydbg.distributed.cuts import Cut, Requirement
from replaydbg.distributed.descriptors import (
    FILE,
    INHERITED,
    PAIR,
    PIPE,
    ChannelEnd,
    DescriptorTable,
    given_descriptors,
)
from replaydbg.distributed.edges import BareTransfer, bare_transfers
from replaydbg.distributed.happens_before import number_in
from replaydbg.distributed.lock_ends import Clock, Ending, LockEnds
from replaydbg.distributed.matching.columns import NEVER
from replaydbg.distributed.matching.sides import DATAGRAMS, PIPES, STREAM_SOCKETS
from replaydbg.distributed.wait_history import SEMAPHORE, EndMet, Shutdown, WaitHistory
from replaydbg.errors import ReplaydbgError
from replaydbg.events.records import Event
from replaydbg.events.transfers import Endpoint
from replaydbg.groups.causality import program_starts
from replaydbg.groups.group_cuts import GroupCuts
from replaydbg.log.reader import open_recording
from replaydbg.store.directory import member_path

STREAM = "stream"
"""The kind of the endpoint of calls that end streams, and of those that find them ended."""

CLOSED_FILE = "file"
"""That of the close of a file that could be written."""

EVENTFD, LOCK_OF_FILE = "eventfd", "file-lock"
"""Kinds of endpoints that are no ends of channels, and for which a process can wait."""

MOST_INHERITED = 1 << 10
"""Numbers of descriptors that a process without a recording may have got are below."""


def require_ends(cuts: GroupCuts) -> str:
    """Let cuts meet what ends of streams and accepted connections need: one pass over the log of each process.

    Returns why they do not; empty: they do.
    """
    found, problem = requirements_of_ends(cuts)
    cuts.require(found)
    return problem


def ends_have_tickets(cuts: GroupCuts) -> bool:
    """Whether the group's clock has the ends of streams: not in recordings of earlier versions."""
    return any(end.kind == STREAM for member in cuts.opened.matching.members for end in member.endpoints)


def requirements_of_ends(cuts: GroupCuts) -> tuple[list[Requirement], str]:
    """Return what ends of streams and accepted connections need, and why that is not known; empty: it is."""
    try:
        return list(GroupEnds(cuts).requirements()), ""
    except ReplaydbgError as error:
        return [], str(error)


class GroupEnds:
    """Reads the logs of a group once, and knows which ends of channels each process holds."""

    def __init__(self, cuts: GroupCuts) -> None:
        """Take the cuts of a group. Raises a ReplaydbgError."""
        self._cuts, self._opened = cuts, cuts.opened
        self._rows = {row.number: row for row in self._opened.group.processes}
        self._starts = {start.child: start for start in program_starts(self._opened)}
        self.histories: dict[int, WaitHistory] = {}
        """Of each recorded process: its descriptors, and what its threads wait for."""
        self._initial: dict[int, dict[int, ChannelEnd]] = {}
        self._begun: dict[int, dict[int, tuple[int, int]]] = {}
        """Of calls that close descriptors: by process and event, after how many events they began, and their ticket."""
        self._foreign: defaultdict[ChannelEnd, list[int]] = defaultdict(list)
        """The processes without a recording that got an end."""
        events: defaultdict[int, set[int]] = defaultdict(set)
        for row in self._rows.values():
            events[row.parent].add(row.event)
        for start in self._starts.values():
            events[start.process].add(start.event)
        for member in self._opened.matching.members:
            self._read(member.process, events[member.process])
        self._give_to_foreign()

    def _read(self, process: int, starts: set[int]) -> None:
        member = self._opened.member(process)
        columns = member.transfers
        wanted = (*PIPES, *STREAM_SOCKETS, *DATAGRAMS, SEMAPHORE, EVENTFD, LOCK_OF_FILE)
        used = zip(columns.event, columns.endpoint, strict=True)
        endpoints = {event: number for event, number in used if event and member.endpoints[number - 1].kind in wanted}
        endpoints.update(columns.interrupted)
        self._begun[process] = {
            row.event: (row.begun, row.ticket)
            for kind in (STREAM, CLOSED_FILE)
            for row in bare_transfers([member], kind)
            if row.event and not row.is_receive
        }
        with open_recording(member_path(self._opened.directory, process)) as recording:
            initial = self._initial[process] = self._given(process, recording.header.fds)
            table = DescriptorTable(initial, lambda event: self._opened.owner(process, event)[0])
            history = self.histories[process] = WaitHistory(table, endpoints, gives=starts.__contains__)
            history.read(self._cuts.with_pauses(recording.events()))
        for row, descriptor in columns.descriptors:  # of calls that never ended
            end, number = table.ends.get(descriptor), columns.endpoint[row]
            if end is not None and member.endpoints[number - 1].kind in wanted:
                history.endpoint_of.setdefault(end, number)

    def _given(self, process: int, inherited: tuple[int, ...]) -> dict[int, ChannelEnd]:
        """Return the descriptors with which the log of a process begins."""
        member, start = self._opened.member(process), self._starts.get(process)
        if member.branch and member.parent in self._initial:
            return self._initial[member.parent]
        known: dict[int, ChannelEnd] = {}
        if start is not None and start.process in self.histories:
            given = self.histories[start.process].given.get(start.event)
            known = given_descriptors(*given, inherited) if given is not None else {}
        return {each: known.get(each, ChannelEnd(process, 0, each, INHERITED)) for each in (0, 1, 2, *inherited)}

    def _give_to_foreign(self) -> None:
        for row in self._rows.values():
            if row.number in self.histories:
                continue
            parent, event = row.parent, row.event
            while parent in self._rows and parent not in self.histories and self._rows[parent].parent < parent:
                parent, event = self._rows[parent].parent, self._rows[parent].event
            given = self.histories[parent].given.get(event) if parent in self.histories else None
            if given is not None:
                for end in set(given_descriptors(*given, range(3, MOST_INHERITED)).values()):
                    self._foreign[end].append(row.number)

    def descriptors(self, process: int, position: int) -> dict[int, ChannelEnd]:
        """Return what the descriptors of a process refer to at a position: a pass over its log up to there."""
        table = DescriptorTable(self._initial[process], lambda event: self._opened.owner(process, event)[0])
        if position:
            with open_recording(member_path(self._opened.directory, process)) as recording:
                for entry in recording.events(last=position, controls=False):
                    if isinstance(entry, Event):
                        table.apply(entry)
        return dict(table.ends)

    def is_shared(self, end: ChannelEnd, process: int) -> bool:
        """Whether any process other than this one ever held an end."""
        return bool(self._foreign.get(end)) or any(
            other != process and history.table.held.get(end) for other, history in self.histories.items()
        )

    def endpoint(self, end: ChannelEnd) -> Endpoint | None:
        """Return what the kernel called an end; None: it was not used."""
        return self._identities.get(end)

    def shut(self, end: ChannelEnd, cut: Cut) -> tuple[bool, bool]:
        """Return whether receiving from, and sending to, a socket was shut down in a cut."""
        before = [each for process, each in self._shutdowns({end}) if each.event <= cut.get(process, 0)]
        return any(each.of_receiving for each in before), any(each.of_sending for each in before)

    # ---- which belong together ----

    @cached_property
    def _identities(self) -> dict[ChannelEnd, Endpoint]:
        """Ends with what the kernel called them, for those that were used."""
        found: dict[ChannelEnd, Endpoint] = {}
        for process, history in self.histories.items():
            endpoints = self._opened.member(process).endpoints
            for end, number in history.endpoint_of.items():
                found.setdefault(end, endpoints[number - 1])
        return found

    @cached_property
    def _by_identity(self) -> dict[tuple[str, str, str], set[ChannelEnd]]:
        found: defaultdict[tuple[str, str, str], set[ChannelEnd]] = defaultdict(set)
        for end, endpoint in self._identities.items():
            found[endpoint.kind, endpoint.own, endpoint.peer].add(end)
        return found

    def name(self, end: ChannelEnd) -> str:
        """Return the kind and identity of an end; empty: not known."""
        identity = self._identities.get(end) or self._identities.get(end._replace(side=1 - end.side))
        return f"{identity.kind} {identity.own}" if identity is not None else ""

    def others(self, end: ChannelEnd) -> set[ChannelEnd] | None:
        """Return the other ends of the channel of an end; None: not known, or outside of the group."""
        if end.kind in (PIPE, PAIR):
            other = end._replace(side=1 - end.side)
            return {other} | {each for each in self._unmade(end, other) if each.kind not in (PIPE, PAIR)}
        identity = self._identities.get(end)
        if identity is None or not identity.peer or identity.kind in DATAGRAMS:
            return None
        if identity.kind in PIPES:
            return self._by_identity[identity.kind, identity.own, identity.own] - {end}
        return self._by_identity.get((identity.kind, identity.peer, identity.own)) or None

    def _unmade(self, end: ChannelEnd, other: ChannelEnd) -> set[ChannelEnd]:
        """Return the ends known by the identity of `other` alone: of processes that got them unseen."""
        own, its = self._identities.get(end), self._identities.get(other)
        known = own or its
        if known is not None and known.kind in PIPES:
            return self._by_identity[known.kind, known.own, known.own] - {end}
        if own is not None:
            return self._by_identity.get((own.kind, own.peer, own.own), set())
        return self._by_identity.get((its.kind, its.own, its.peer), set()) if its is not None else set()

    def requirements(self, killed: Collection[int] = ()) -> Iterator[Requirement]:
        """Yield what cuts need for ends of streams, accepted connections and locks of files, as far as logs show it.

        What `killed` processes left open is closed after their last position: no cut has that.
        """
        for process, history in self.histories.items():
            branch = self._opened.member(process).branch
            for met in history.ends_met:
                if met.event >= branch:
                    yield from self._end_met(process, met, killed)
            for end, event in history.accepted.items():
                if event >= branch:
                    yield from self._accepted(process, event, end)
        for each in self._locks(killed).requirements():
            yield each
            if each.events[0] == self._end_of(each.source, killed):
                yield from self._kill(each.source, each)
        for row in bare_transfers(self._opened.matching.members, "process"):  # waits for the end of one
            number = number_in(row.end.own)
            if row.event and row.is_receive and number in self.kills:
                yield from self._kill(number, Requirement(number, row.process, (), (row.event,)))

    def _kill(self, killed: int, end: Requirement) -> Iterator[Requirement]:
        """Yield that whoever killed a process had begun to before anybody met its end: if only one may have been."""
        begun = {row.process: row.begun for row in reversed(self.kills.get(killed, ()))}
        for process, event in begun.items() if len(begun) == 1 else ():
            if process != end.target:
                yield end._replace(source=process, events=(event + 1,))

    @cached_property
    def kills(self) -> dict[int, list[BareTransfer]]:
        """For each process that a signal of another one ended, the calls that may have sent it."""
        found: defaultdict[int, list[BareTransfer]] = defaultdict(list)
        statuses = {number: row.status or 0 for number, row in self._rows.items()}
        deaths = {f"{number}:{-status}": number for number, status in statuses.items() if status < 0}
        for row in bare_transfers(self._opened.matching.members, "signal"):
            if not row.is_receive and row.end.own in deaths:
                found[deaths[row.end.own]].append(row)
        return dict(found)

    def _locks(self, killed: Collection[int]) -> LockEnds:
        members = self._opened.matching.members

        @cache  # only of processes whose locks ended: it sorts all transfers
        def clock_of(process: int) -> Clock:
            return Clock(self._opened.member(process))

        def end_of(process: int) -> Ending:
            return Ending(process, self._end_of(process, killed), clock_of(process).before(NEVER))

        def closings(end: ChannelEnd) -> Iterator[Ending]:
            for process, closed in self._closings(end):
                if not closed:
                    yield end_of(process)
                    continue
                known = self._begun[process].get(closed)
                ticket = known[1] if known is not None else clock_of(process).before(closed)
                yield Ending(process, self._first_after(process, closed), ticket)

        return LockEnds(members, {each: history.locked for each, history in self.histories.items()}, closings, end_of)

    def _end_met(self, process: int, met: EndMet, killed: Collection[int]) -> Iterator[Requirement]:
        """Yield what a call needs that met the end of a stream.

        That is the one process that shut the other end down; otherwise all processes have closed that.
        """
        others = self.others(met.end) or set()
        kinds = {self._identities[each].kind for each in (met.end, *others) if each in self._identities}
        if met.end.kind == FILE or kinds.intersection(DATAGRAMS) or self._was_shut_here(process, met):
            return  # a named pipe is opened again, an empty datagram is no end, and its own shutdown is enough
        shutdowns: dict[int, int] = {}
        for other, each in self._shutdowns(others):
            if each.of_receiving if met.is_broken else each.of_sending:
                event = self._first_after(other, each.event)
                shutdowns[other] = min(event, shutdowns.get(other, event))
        if shutdowns:  # of several processes, any can have been the first
            for other, first in shutdowns.items() if len(shutdowns) == 1 else ():
                yield Requirement(other, process, (first,), (met.event,))
            return
        for end in others:
            for other, closed in self._closings(end):
                if other != process:
                    event = self._first_after(other, closed) if closed else self._end_of(other, killed)
                    needed = Requirement(other, process, (event,), (met.event,))
                    yield needed
                    yield from self._kill(other, needed) if not closed else ()

    def _end_of(self, process: int, killed: Collection[int]) -> int:
        return self._cuts.finder.last[process] + (process in killed)

    def _first_after(self, process: int, event: int) -> int:
        """Return the first event that ended after the call of an event began: its effect can be seen before it ends."""
        begun, _ = self._begun[process].get(event, (event - 1, 0))
        return min(event, begun + 1)

    def _was_shut_here(self, process: int, met: EndMet) -> bool:
        """Whether the call's own end may have been shut down by then; a shutdown in another thread can end later."""
        return any(
            (each.of_sending if met.is_broken else each.of_receiving)
            and (other != process or each.lane != met.lane or each.event < met.event)
            for other, each in self._shutdowns({met.end})
        )

    def _shutdowns(self, ends: Collection[ChannelEnd]) -> Iterator[tuple[int, Shutdown]]:
        """Yield the shutdowns of ends, with their process; what it did before its fork is its parent's."""
        for process, history in self.histories.items():
            branch = self._opened.member(process).branch
            for each in (each for end in ends for each in history.shutdowns.get(end, ())):
                if each.event >= branch:
                    yield process, each

    def _closings(self, end: ChannelEnd) -> Iterator[tuple[int, int]]:
        """Yield when each process closed an end; 0: when it ended. What it did before its fork is its parent's."""
        for process, history in self.histories.items():
            for held in history.table.held.get(end, ()):
                if held.last is None or held.last >= self._opened.member(process).branch:
                    yield process, held.last or 0

    def _accepted(self, process: int, event: int, end: ChannelEnd) -> Iterator[Requirement]:
        """Yield that the connection had been begun: after the last event before that call in its thread."""
        for other, history in self.histories.items():
            for each in self.others(end) or ():
                before = history.connects.get(each)
                if before is not None and other != process and before + 1 >= self._opened.member(other).branch:
                    yield Requirement(other, process, (before + 1,), (event,))

    # ---- in a cut ----

    def holders(
        self, end: ChannelEnd, cut: Cut, has_ended: Callable[[int], bool], *, perhaps: bool = False
    ) -> Iterator[int]:
        """Yield the processes that hold an end in a cut, or `perhaps` hold it; 0: one without a recording."""
        for process, history in self.histories.items():
            table = history.table
            held = (table.perhaps_held if perhaps else table.held).get(end, ())
            position = self._position(process, cut) if held else 0
            if position and any(each.contains(position) for each in held) and not has_ended(process):
                yield process
        if any(not self._has_ended(number, cut) for number in self._foreign.get(end, ())):
            yield 0

    def _position(self, process: int, cut: Cut) -> int:
        """Return the position of a process; of one that was started but has not begun the first one; otherwise 0."""
        if cut.get(process):
            return cut[process]
        row = self._rows[process]
        return max(self._opened.member(process).branch, 1) if cut.get(row.parent, 0) >= row.event > 0 else 0

    def _has_ended(self, number: int, cut: Cut) -> bool:
        """Whether the parent of a process without a recording knows that it has ended."""
        row = self._rows[number]
        return bool(row.waited) and cut.get(row.parent, 0) >= row.waited

    def has_bytes(self, end: ChannelEnd, process: int, cut: Cut) -> bool:
        """Whether bytes are under way to an end of a process in a cut, or could be."""
        for each in (end, *(self.others(end) or ())):
            for other, history in self.histories.items():
                number = history.endpoint_of.get(each)
                for channel in self._channels.get((other, number), ()) if number is not None else ():
                    receivers = channel.found.channel.receivers
                    if process not in receivers and receivers:
                        continue
                    if any(True for _ in channel.in_flight(cut)) or channel.unfinished(cut):
                        return True
        return False

    @cached_property
    def _channels(self) -> dict[tuple[int, int], list[ChannelHistory]]:
        """The channels in which each endpoint, a process and a number, sent or received."""
        found: defaultdict[tuple[int, int], list[ChannelHistory]] = defaultdict(list)
        members = self._opened.matching.members
        for history in self._cuts.histories:
            parts = (*history.found.channel.sends, *history.found.channel.receives)
            used = {
                (members[part.member].process, members[part.member].transfers.endpoint[row])
                for part in parts
                for row in part.rows
            }
            for each in used:
                found[each].append(history)
        return found
