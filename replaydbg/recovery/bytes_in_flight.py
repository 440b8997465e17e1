"""Find what was sent between the processes of a group and not received in a recovery line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace

from replaydbg.distributed.channel_states import ChannelHistory, InFlight
from replaydbg.distributed.descriptors import PAIR, PIPE, ChannelEnd
from replaydbg.distributed.matching.segments import UNSURE
from replaydbg.distributed.matching.sides import PIPES, STREAM_SOCKETS
from replaydbg.errors import CannotResume
from replaydbg.events.records import Event
from replaydbg.groups.opened_group import received_bytes
from replaydbg.log.reader import open_recording
from replaydbg.log.transfers import PASSES
from replaydbg.recovery.recovery_line import RecoveryLine
from replaydbg.store.directory import member_path

_UNIX_DATAGRAMS = "unix-datagram"
"""The kind of Unix sockets that keep the bounds of messages: unlike those of UDP, their messages are not lost."""


@dataclass(frozen=True, slots=True)
class FlyingPiece:
    """Bytes in flight, of one send."""

    process: int
    """The process that sent them."""
    event: int
    """Its event."""
    offset: int
    """How many bytes of the send come before them."""
    length: int
    data: bytes | None
    """The bytes as they were received later; None: nobody received them, so only a replay of the sender has them."""

    def filled(self, sent: bytes) -> FlyingPiece:
        """Return the same with the bytes, if they are missing and `sent`, the data of the whole send, has them."""
        data = sent[self.offset : self.offset + self.length]
        return replace(self, data=data) if self.data is None and len(data) == self.length else self


def flying_pieces(
    line: RecoveryLine, is_awaited: Callable[[ChannelEnd], bool], receives: Callable[[str], bool]
) -> dict[ChannelEnd, list[FlyingPiece]]:
    """Return the bytes in flight by the end that sent them, in order.

    `is_awaited` returns whether anybody can still receive what was sent through an end, `receives` whether a process
    has a datagram socket of a name. Raises CannotResume if something was in flight that cannot be sent again.
    """
    return _Search(line, is_awaited, receives).pieces()


class _Search:
    """One pass over the channels of a group."""

    def __init__(
        self, line: RecoveryLine, is_awaited: Callable[[ChannelEnd], bool], receives: Callable[[str], bool]
    ) -> None:
        self._line, self._is_awaited, self._receives = line, is_awaited, receives
        self._members = line.opened.matching.members
        self._senders = _ends_by_name(line)

    def pieces(self) -> dict[ChannelEnd, list[FlyingPiece]]:
        """Return the pieces of each end. Raises CannotResume."""
        received: defaultdict[int, set[int]] = defaultdict(set)
        found: list[tuple[ChannelHistory, InFlight, ChannelEnd]] = []
        for history in self._line.cuts.histories:
            if history.found.channel.kind not in (*PIPES, *STREAM_SOCKETS, _UNIX_DATAGRAMS):
                continue
            for part in history.in_flight(self._line.cut.positions):
                end = self._sender(history, part)
                if end is None:
                    continue
                self._check(history, part)
                found.append((history, part, end))
                if part.receive is not None:
                    taker, at = history.found.receives.place(part.receive)
                    received[self._members[taker].process].add(self._members[taker].transfers.event[at])
        contents = {process: self._received(process, events) for process, events in received.items()}
        pieces: defaultdict[ChannelEnd, list[FlyingPiece]] = defaultdict(list)
        for history, part, end in found:
            pieces[end].append(self._piece(history, part, contents))
        return pieces

    def _sender(self, history: ChannelHistory, part: InFlight) -> ChannelEnd | None:
        """Return the end through which something in flight was sent; None: nobody can receive it any more."""
        channel = history.found.channel
        index, row = history.found.sends.place(part.send)
        transfers = self._members[index].transfers
        used = self._members[index].endpoints[transfers.endpoint[row] - 1]
        end = self._senders.get((used.kind, used.own, used.peer))
        if channel.is_datagram and (end is None or end.kind != PAIR or transfers.address[row]):
            if self._receives(channel.peer):
                self._refuse(history, "messages were in flight to a socket that is not part of a pair")
            return None
        if end is None and channel.receivers:
            self._refuse(history, "the sender of bytes in flight cannot be determined")
        return end if end is not None and self._is_awaited(end) else None

    def _check(self, history: ChannelHistory, part: InFlight) -> None:
        """Raise CannotResume for what cannot be sent again."""
        index, row = history.found.sends.place(part.send)
        if history.found.channel.is_urgent:
            self._refuse(history, "urgent data was in flight")
        if part.certainty == UNSURE:
            self._refuse(history, "the bytes in flight cannot be determined")
        if not part.offset and self._members[index].transfers.flags[row] & PASSES:  # they come with the first byte
            process = self._members[index].process
            self._refuse(history, f"descriptors that process {process} sent (SCM_RIGHTS) were in flight")

    def _refuse(self, history: ChannelHistory, reason: str) -> None:
        channel = history.found.channel
        raise CannotResume(self._line.name, f"{channel.kind} {channel.name}: {reason}")

    def _received(self, process: int, events: set[int]) -> dict[int, bytes]:
        with open_recording(member_path(self._line.directory, process)) as recording:
            return {
                entry.number: received_bytes(recording, entry)
                for entry in recording.events(first=min(events), last=max(events), controls=False)
                if isinstance(entry, Event) and entry.number in events
            }

    def _piece(self, history: ChannelHistory, part: InFlight, contents: dict[int, dict[int, bytes]]) -> FlyingPiece:
        index, row = history.found.sends.place(part.send)
        data = None
        if part.receive is not None:
            taker, at = history.found.receives.place(part.receive)
            whole = contents[self._members[taker].process].get(self._members[taker].transfers.event[at], b"")
            data = whole[part.taken_at : part.taken_at + part.length]
            data = data if len(data) == part.length else None
        event = self._members[index].transfers.event[row]
        return FlyingPiece(self._members[index].process, event, part.offset, part.length, data)


def _ends_by_name(line: RecoveryLine) -> dict[tuple[str, str, str], ChannelEnd]:
    """Return the ends by their names: a process that was resumed before has several endpoints of one end."""
    found: dict[tuple[str, str, str], ChannelEnd] = {}
    for process, history in line.ends.histories.items():
        endpoints = line.opened.member(process).endpoints
        for end, number in history.endpoint_of.items():
            name = endpoints[number - 1]
            sender = end._replace(side=1) if end.kind == PIPE else end
            found.setdefault((name.kind, name.own, name.peer), sender)
    return found
