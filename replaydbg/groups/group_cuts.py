"""The consistent cuts of a group of recorded processes, with the state of its channels."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from replaydbg.distributed.channel_states import ChannelHistory, InFlight
from replaydbg.distributed.cuts import CutFinder, Requirement, finder_of
from replaydbg.distributed.matching.channels import MessageChannel
from replaydbg.distributed.matching.columns import Member
from replaydbg.distributed.matching.sides import DATAGRAMS, PIPES, STREAM_SOCKETS
from replaydbg.distributed.peeks import peek_requirements
from replaydbg.distributed.quiet import QuietFinder
from replaydbg.distributed.resumable import ResumableFinder
from replaydbg.events.records import Entry, Event
from replaydbg.groups.causality import program_starts
from replaydbg.groups.messages import CERTAINTIES, MessageEnd, end_of
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.log.reader import open_recording
from replaydbg.log.transfers import PEEKS, RECEIVES
from replaydbg.store.directory import member_path

_EVERY = 10_000
"""Entries of a log after which `idle` is called."""


class TakenBytes(NamedTuple):
    """Bytes of a message in the receive that took them after the cut."""

    process: int
    event: int
    offset: int
    """How many bytes of the receive come before them."""
    length: int


class FlyingMessage(NamedTuple):
    """A send of which bytes had not been received."""

    channel: MessageChannel
    number: int
    """The index of the send in the channel."""
    send: MessageEnd
    receive: MessageEnd | None
    """The first receive that took them later; None: nobody did."""
    length: int
    """Number of these bytes; for a send that never ended those that are known."""
    certainty: str
    """One of CERTAINTIES: whether they are those of this send."""
    is_whole: bool
    """Whether they are all bytes of the send."""
    taken: tuple[TakenBytes, ...]
    """Where they are in receives, in order; those that nobody received are missing."""


class WholeMessage(NamedTuple):
    """All bytes of a send, some of which had not been received."""

    channel: int
    """The number of the channel."""
    number: int
    """The index of the send in the channel."""
    process: int
    """The process that sent it."""
    event: int
    """The send's event; 0: it had not ended when the recording ended."""
    length: int
    """Number of bytes; for a send that never ended those that are known."""
    taken: tuple[TakenBytes, ...]
    """Where they are in receives, in order; those that nobody received are missing."""


class GroupCut(NamedTuple):
    """A cut: how far each process had gone."""

    positions: dict[int, int]
    """For each recorded process the number of its events; 0: before the first one."""
    wanted: dict[int, int]
    """The positions that were asked for."""
    doubts: tuple[str, ...]
    """Why it is not known to be consistent; empty: it is."""
    is_quiet: bool
    """Whether only such cuts were asked for in which each process waits for others, or has ended."""


class GroupCuts:
    """Finds cuts. The first answer matches all channels; later ones are a look at tables."""

    def __init__(self, opened: OpenedGroup, idle: Callable[[], None] = lambda: None) -> None:
        """Take an opened group; `idle` is called often while logs are read, and may raise."""
        self.opened, self._idle = opened, idle

    @cached_property
    def finder(self) -> CutFinder:
        """The search for the latest consistent cut."""
        return self._finder(())

    def require(self, requirements: Iterable[Requirement]) -> None:
        """From now on cuts meet these requirements, too."""
        self.finder = self._finder(requirements)

    def _finder(self, more: Iterable[Requirement]) -> CutFinder:
        matching = self.opened.matching
        return finder_of(matching, program_starts(self.opened), chain(peek_requirements(matching), more))

    @cached_property
    def histories(self) -> list[ChannelHistory]:
        """The channels between recorded processes."""
        matching = self.opened.matching
        return [ChannelHistory(matching.match(each)) for each in matching.channels if each.senders]

    @cached_property
    def quiet(self) -> dict[int, array[int]]:
        """The quiet positions of each process: one pass over each log. Raises a ReplaydbgError."""
        return {each.process: self._quiet(each.process) for each in self.opened.matching.members}

    @cached_property
    def resumable(self) -> dict[int, array[int]]:
        """The positions from which each process can go on: one pass over each log. Raises a ReplaydbgError."""
        return {each.process: self._resumable(each.process) for each in self.opened.matching.members}

    def times(self) -> dict[int, list[tuple[int, int]]]:
        """Return the marks of each process's clock: a position, and nanoseconds since its start.

        One pass over each log. Raises a ReplaydbgError.
        """
        found = {}
        for member in self.opened.matching.members:
            marks: list[tuple[int, int]] = []
            with open_recording(member_path(self.opened.directory, member.process)) as recording:
                for entry in recording.events():
                    if isinstance(entry, Event) and (not marks or entry.time_ns > marks[-1][1]):
                        marks.append((entry.number - 1, entry.time_ns))
            found[member.process] = marks
        return found

    def _quiet(self, process: int) -> array[int]:
        member = self.opened.member(process)
        columns = member.transfers
        with open_recording(member_path(self.opened.directory, process)) as recording:
            finder = QuietFinder(_receives(member))
            found = finder.read(self.with_pauses(recording.events()))
        if finder.is_alone and _was_receiving(member.events, columns.event, columns.begun, columns.flags):
            found.append(member.events)
        return array("Q", sorted({each for each in found if each >= member.branch}))

    def _resumable(self, process: int) -> array[int]:
        member = self.opened.member(process)
        with open_recording(member_path(self.opened.directory, process)) as recording:
            found = ResumableFinder(_receives(member)).read(self.with_pauses(recording.events()))
        return array("Q", (each for each in found if each >= member.branch))

    def with_pauses(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yield the entries of a log, and call `idle` now and then."""
        for at, entry in enumerate(entries):
            if not at % _EVERY:
                self._idle()
            yield entry

    @property
    def every(self) -> dict[int, range]:
        """All positions of each process."""
        return {process: range(1, last + 1) for process, last in self.finder.last.items()}

    def at(self, positions: Mapping[int, int], *, is_quiet: bool) -> GroupCut:
        """Return the cut with these positions, which must be consistent."""
        return GroupCut(dict(positions), {}, tuple(self._doubts(positions)), is_quiet)

    def latest(self, wanted: Mapping[int, int], *, quiet: bool = False) -> GroupCut:
        """Return the latest consistent cut at or before positions; `quiet`: one at which every process waits.

        Processes that are not in `wanted` go as far as they can.
        """
        positions = self.finder.latest(wanted, self.quiet if quiet else None)
        return GroupCut(positions, dict(wanted), tuple(self._doubts(positions)), quiet)

    def latest_resumable(self, wanted: Mapping[int, int]) -> GroupCut:
        """Return the latest consistent cut at or before positions from which every process can go on."""
        return self.at(self.finder.latest(wanted, self.resumable), is_quiet=False)

    def _doubts(self, positions: Mapping[int, int]) -> list[str]:
        found = []
        for history in self.histories:
            channel = history.found.channel
            if history.is_unsure(positions):
                found.append(f"{channel.kind} {channel.name}: what was received does not match what was sent")
            elif channel.doubt and history.has_received(positions):
                found.append(f"{channel.kind} {channel.name}: {channel.doubt}")
        return found

    def in_flight(self, cut: GroupCut) -> list[FlyingMessage]:
        """Return the messages that had been sent and not received in a cut, by channel."""
        found = []
        for history in self.histories:
            if history.found.channel.receivers:
                parts: dict[int, list[InFlight]] = {}
                for part in history.in_flight(cut.positions):
                    parts.setdefault(part.send, []).append(part)
                found += [self._message(history, each) for each in parts.values()]
        return found

    def _message(self, history: ChannelHistory, parts: Sequence[InFlight]) -> FlyingMessage:
        found, send = history.found, parts[0].send
        takers = [part for part in parts if part.receive is not None]
        length = sum(part.length for part in parts)
        first = takers[0].receive if takers else None
        return FlyingMessage(
            found.channel,
            send,
            end_of(self.opened, found, send, is_send=True),
            end_of(self.opened, found, first, is_send=False) if first is not None else None,
            length,
            CERTAINTIES[max(part.certainty for part in parts)],
            send < len(found.sends) and length == found.sends.length[send],
            tuple(self._taken(history, part) for part in takers),
        )

    def _taken(self, history: ChannelHistory, part: InFlight) -> TakenBytes:
        assert part.receive is not None
        index, row = history.found.receives.place(part.receive)
        member = self.opened.matching.members[index]
        return TakenBytes(member.process, member.transfers.event[row], part.taken_at, part.length)

    def whole_in_flight(self, cut: GroupCut) -> list[WholeMessage]:
        """Return the messages of which bytes had been sent and not received in a cut, each with all of its bytes.

        Reads no log, unlike `in_flight`, so it can be called for thousands of cuts.
        """
        found = []
        for history in self.histories:
            if history.found.channel.receivers:
                sends = dict.fromkeys(part.send for part in history.in_flight(cut.positions))
                found += [self._whole(history, each) for each in sends]
        return found

    def _whole(self, history: ChannelHistory, send: int) -> WholeMessage:
        sends = history.found.sends
        index, row = sends.place(send)
        member = self.opened.matching.members[index]
        parts = history.parts_of(send)
        length = sends.length[send] if send < len(sends) else sum(each.length for each in parts)
        taken = tuple(self._taken(history, each) for each in parts)
        return WholeMessage(
            history.found.channel.number, send, member.process, member.transfers.event[row], length, taken
        )

    def unfinished(self, cut: GroupCut) -> list[tuple[MessageChannel, MessageEnd]]:
        """Return sends that had begun and not ended in a cut: of these, more bytes can have been under way."""
        return [
            (history.found.channel, end_of(self.opened, history.found, send, is_send=True))
            for history in self.histories
            for send in history.unfinished(cut.positions)
        ]


def _receives(member: Member) -> set[int]:
    """Return the events that received from a channel."""
    channels = {end.number for end in member.endpoints if end.kind in (*PIPES, *STREAM_SOCKETS, *DATAGRAMS)}
    columns = member.transfers
    return {
        event
        for event, endpoint, flags in zip(columns.event, columns.endpoint, columns.flags, strict=True)
        if flags & RECEIVES and not flags & PEEKS and endpoint in channels
    }


def _was_receiving(events: int, event: Sequence[int], begun: Sequence[int], flags: bytes) -> bool:
    """Whether the only call that had not ended was a receive, after the last event: the process waited."""
    unfinished = [row for row, number in enumerate(event) if not number]
    return len(unfinished) == 1 and begun[unfinished[0]] == events and bool(flags[unfinished[0]] & RECEIVES)
