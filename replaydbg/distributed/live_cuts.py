"""The state of a group at a value of its clock, and the check of it against the search for consistent cuts.

Every send takes a ticket of the clock before it is made, every receive after it. So a receive with a ticket up to a
value has a send with a smaller one, and the positions before the first later ticket of each process are consistent. A
value is a marker on each channel: the bytes sent and received by then are two offsets in its stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from replaydbg.distributed.channel_states import ChannelHistory
from replaydbg.distributed.cuts import Cut, CutFinder, last_position
from replaydbg.distributed.matching.columns import Member
from replaydbg.log.transfers import RECEIVES


class MarkedChannel(NamedTuple):
    """A channel at a value of the clock."""

    number: int
    sent: int
    """Bytes of the sends that had been begun by then; of datagrams their number."""
    received: int
    """Bytes of the receives that had ended; of datagrams their number."""


def positions_at(members: Sequence[Member], ticket: int) -> dict[int, int]:
    """Return for each process the position before its first transfer that has a later ticket."""
    return {member.process: _position_at(member, ticket) for member in members}


def _position_at(member: Member, ticket: int) -> int:
    columns = member.transfers
    least = last_position(member)
    for row, number in enumerate(columns.ticket):
        if number > ticket:
            begins = columns.begun[row]
            least = min(least, columns.event[row] - 1 if columns.flags[row] & RECEIVES else begins)
    return least


def marked_channel(history: ChannelHistory, ticket: int) -> MarkedChannel:
    """Return how far a channel had come at a value of the clock: by tickets alone, without any matching."""
    found = history.found
    is_datagram = found.channel.is_datagram
    sent = sum(
        1 if is_datagram else length
        for length, number in zip(found.sends.length, found.sends.ticket, strict=True)
        if number <= ticket
    )
    received = sum(
        1 if is_datagram else length
        for length, number in zip(found.receives.length, found.receives.ticket, strict=True)
        if 0 < number <= ticket
    )
    return MarkedChannel(found.channel.number, sent, received)


def differences(
    finder: CutFinder,
    histories: Iterable[ChannelHistory],
    members: Sequence[Member],
    ticket: int,
    wanted: Mapping[int, int],
) -> tuple[dict[int, int], list[str]]:
    """Return the latest consistent cut at or before the positions of a live cut, and where both differ.

    A process that is started after the value is at 0 in the cut: its first events have no tickets.
    """
    cut = finder.latest(wanted)
    found = [
        f"process {process} is at {cut[process]} there, and at {position} by the clock"
        for process, position in sorted(wanted.items())
        if cut[process] != position and (cut[process] or _has_tickets(members, process, ticket))
    ]
    for history in histories:
        difference = _difference(history, cut, ticket)
        if difference:
            found.append(difference)
    return cut, found


def _has_tickets(members: Sequence[Member], process: int, ticket: int) -> bool:
    member = next(each for each in members if each.process == process)
    return any(0 < number <= ticket for number in member.transfers.ticket)


def _difference(history: ChannelHistory, cut: Cut, ticket: int) -> str:
    """Return how the bytes in flight differ from those between the two offsets; empty: they do not."""
    channel = history.found.channel
    if not channel.receivers or history.found.sends.open or history.is_unsure(cut):
        return ""
    marked = marked_channel(history, ticket)
    parts = list(history.in_flight(cut))
    count = len({part.send for part in parts}) if channel.is_datagram else sum(part.length for part in parts)
    expected = marked.sent - marked.received
    if count == expected:
        return ""
    what = "datagrams" if channel.is_datagram else "bytes"
    return f"channel {channel.number} has {count:,} {what} in flight there, and {expected:,} by the clock"
