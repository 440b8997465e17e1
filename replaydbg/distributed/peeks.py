"""Requirements of receives that only looked at the next bytes (MSG_PEEK): these had been sent."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from replaydbg.distributed.cuts import MOST_EVENTS, Requirement
from replaydbg.distributed.matching.columns import Member
from replaydbg.distributed.matching.matching import GroupMatching, Matched
from replaydbg.distributed.matching.segments import SURE
from replaydbg.log.transfers import PEEKS, URGENT


class _Peek(NamedTuple):
    """A receive that took nothing."""

    event: int
    length: int


def peek_requirements(group: GroupMatching) -> Iterator[Requirement]:
    """Yield what each peek needs: the sends of the bytes that the next receive of its process begins with.

    Only where that process alone receives, so that nobody else can have taken them in between, and where they are
    certainly of one send. A peek that no receive follows is left out: nothing shows which bytes it saw.
    """
    peeks = [_peeks(member) for member in group.members]
    if not any(peeks):
        return
    for channel in group.channels:
        if len(channel.receives) != 1:
            continue
        (part,) = channel.receives
        columns = group.members[part.member].transfers
        if any(columns.flags[row] & URGENT for row in part.rows):
            continue
        endpoints = {columns.endpoint[row] for row in part.rows}
        wanted = sorted(each for endpoint in endpoints for each in peeks[part.member].get(endpoint, ()))
        if wanted:
            yield from _of_channel(group.match(channel), wanted)


def _peeks(member: Member) -> dict[int, list[_Peek]]:
    """Return the peeks of each endpoint."""
    found: defaultdict[int, list[_Peek]] = defaultdict(list)
    columns = member.transfers
    for row, flags in enumerate(columns.flags):
        if flags & PEEKS and not flags & URGENT and columns.event[row] and columns.length[row]:
            found[columns.endpoint[row]].append(_Peek(columns.event[row], columns.length[row]))
    return found


def _of_channel(found: Matched, peeks: list[_Peek]) -> Iterator[Requirement]:
    sends, receives, segments = found.sends, found.receives, found.segments
    order = sorted((receives.event[receive], at) for at, receive in enumerate(segments.receive))
    for peek in peeks:
        place = bisect_right(order, (peek.event, len(segments)))
        if place == len(order):
            continue
        at = order[place][1]
        target = receives.members[receives.member[segments.receive[at]]].process
        last = at + 1
        if not found.channel.is_datagram:
            last = bisect_left(segments.first, segments.first[at] + peek.length, lo=at)
        for each in range(at, last):
            if segments.certainty[each] != SURE:
                break
            index, row = sends.place(segments.send[each])
            begun = min(sends.members[index].transfers.begun[row], MOST_EVENTS)
            yield Requirement(sends.members[index].process, target, (begun + 1,), (peek.event,))
