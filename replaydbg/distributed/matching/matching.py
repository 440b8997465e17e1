"""Match the sends and receives of a channel, and check the result by the tickets."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from operator import ge

from replaydbg.distributed.matching.bounds import GroupBounds
from replaydbg.distributed.matching.channels import MessageChannel, find_channels
from replaydbg.distributed.matching.columns import NEVER, Member, Moves
from replaydbg.distributed.matching.content_order import Contents, no_contents
from replaydbg.distributed.matching.crowded import match_crowded
from replaydbg.distributed.matching.datagrams import match_datagrams
from replaydbg.distributed.matching.order_search import Effort
from replaydbg.distributed.matching.segments import AMBIGUOUS, SURE, Contradiction, Segments
from replaydbg.distributed.matching.streams import match_ordered

MOST_CANDIDATES = 16
"""Sends that are returned for an ambiguous receive."""


@dataclass(frozen=True, slots=True)
class Matched:
    """A channel with what is known of each byte."""

    channel: MessageChannel
    sends: Moves
    receives: Moves
    segments: Segments
    contradiction: Contradiction | None
    """Where the bytes of both sides differ; from there on nothing is certain."""
    early: int | None
    """A segment received before it was sent, by the tickets: a matching error, or a forged recording.

    None if there is none.
    """

    @property
    def sent(self) -> int:
        """Number of bytes sent, as far as it is known."""
        return self.sends.total

    @property
    def received(self) -> int:
        """Number of bytes received."""
        return self.receives.total

    @property
    def lost(self) -> int:
        """Number of bytes of sends that ended which nobody received; for datagrams the number of datagrams."""
        if self.channel.is_datagram:
            return len(self.sends) - len(set(self.segments.send))
        return self.sent - self._from_ended

    @property
    def from_nowhere(self) -> int:
        """Number of bytes received that no send is known for; for datagrams the number of datagrams."""
        if self.channel.is_datagram:
            return len(self.receives) - len(self.segments)
        return self.received - sum(self.segments.length)

    @property
    def _from_ended(self) -> int:
        columns = zip(self.segments.send, self.segments.length, strict=True)
        count = len(self.sends)
        if not self.sends.sources:
            return sum(self.segments.length)
        whole = sum(length for send, length in columns if send < count)
        return min(whole, self.sent)

    def candidates(self, at: int) -> tuple[int, ...]:
        """Return the sends that an ambiguous segment can be of: those nearest to the one that it is taken for."""
        own = self.segments.send[at]
        ticket = self.receives.ticket[self.segments.receive[at]] or NEVER
        group = self.segments.groups[at]
        place = bisect_left(group, own)
        near = group[max(place - MOST_CANDIDATES // 2, 0) : place + MOST_CANDIDATES // 2]
        count = len(self.sends)
        return tuple(send for send in near if send == own or send >= count or self.sends.ticket[send] < ticket)

    @property
    def ambiguous(self) -> int:
        """Number of receives that could have taken the bytes of several sends."""
        if not any(self.segments.certainty):
            return 0
        columns = zip(self.segments.receive, self.segments.certainty, strict=True)
        return len({receive for receive, certainty in columns if certainty == AMBIGUOUS})


class GroupMatching:
    """The members of a group, their channels, and what is matched so far: a channel is matched when it is asked for."""

    def __init__(self, members: Sequence[Member], contents: Contents = no_contents) -> None:
        """`contents` returns what a process received: it is asked for where several sent at once."""
        self.members = members
        self.channels = find_channels(members)
        self._matched: dict[int, Matched] = {}
        self._effort = Effort()
        self._contents = contents
        self._bounds = GroupBounds(members)

    def match(self, channel: MessageChannel) -> Matched:
        """Return a channel matched."""
        found = self._matched.get(channel.number)
        if found is None:
            found = self._matched[channel.number] = self._match(channel)
        return found

    def _match(self, channel: MessageChannel) -> Matched:
        keep_empty = channel.is_datagram
        sends = Moves(self.members, channel.sends, keep_empty=keep_empty)
        receives = Moves(self.members, channel.receives, keep_empty=keep_empty)
        contradiction = None
        if channel.is_datagram:
            found = match_datagrams(sends, receives)
        elif sends.is_chain and receives.is_chain:
            found, contradiction = match_ordered(sends, receives)
        else:
            found, contradiction = match_crowded(sends, receives, self._bounds, self._effort, self._contents)
        return Matched(channel, sends, receives, found, contradiction, _early(sends, receives, found))


def _early(sends: Moves, receives: Moves, found: Segments) -> int | None:
    """Return the first segment that was received before it was sent, by the tickets."""
    count = len(sends)
    if any(map(ge, map(_tickets(sends).__getitem__, found.send), map(receives.ticket.__getitem__, found.receive))):
        for at, (send, receive) in enumerate(zip(found.send, found.receive, strict=True)):
            is_certain = found.certainty[at] == SURE and send < count
            if is_certain and sends.ticket[send] >= receives.ticket[receive] > 0:
                return at
    return None


def _tickets(sends: Moves) -> Sequence[int]:
    """Return the tickets of sends, those of open ones after them."""
    if not sends.open:
        return sends.ticket
    tickets = list(sends.ticket)
    for index in range(len(sends.open)):
        member, row = sends.place(len(sends) + index)
        tickets.append(sends.members[member].transfers.ticket[row])
    return tickets
