"""Order the events of different processes by messages and forks. Tickets alone would order more than happened so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from replaydbg.distributed.matching import GroupMatching, Matched
from replaydbg.distributed.segments import SURE


class HappensBefore(NamedTuple):
    """An event of one process that happened before an event of another one."""

    process: int
    event: int
    """For a send, the first event after it began: its bytes can be received before it ends."""
    to_process: int
    to_event: int
    """For a receive, its own event."""
    is_certain: bool
    """Whether the message is not one of several that fit."""


def edges_between(group: GroupMatching) -> Iterator[HappensBefore]:
    """Yield the edges between different processes: forks, then messages by channel, each pair of events once."""
    known = {member.process for member in group.members}
    for member in group.members:
        if member.parent in known:
            yield HappensBefore(member.parent, member.branch, member.process, member.branch, True)
    for channel in group.channels:
        yield from _messages(group.match(channel))


def _messages(found: Matched) -> Iterator[HappensBefore]:
    before = None
    segments = found.segments
    for send, receive, certainty in zip(segments.send, segments.receive, segments.certainty, strict=True):
        index, row = found.sends.place(send)
        to_index, to_row = found.receives.place(receive)
        member, target = found.sends.members[index], found.sends.members[to_index]
        if member.process == target.process:
            continue
        edge = HappensBefore(
            member.process,
            member.transfers.begun[row] + 1,
            target.process,
            target.transfers.event[to_row],
            certainty == SURE and not found.channel.doubt,
        )
        if edge != before:
            yield edge
        before = edge
