"""Edges between events of different processes, and the transfers without bytes that show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from replaydbg.distributed.matching.columns import Member
from replaydbg.events.transfers import Endpoint
from replaydbg.log.transfers import RECEIVES

EDGE_KINDS = ("message", "start", "end", "signal", "semaphore", "file", "stream", "eventfd", "lock")
"""Relations that order two processes: bytes are received; a process is started; its end is waited for; a handler runs
for a signal that was sent; a semaphore that was released is acquired; a file that was written is opened; the end of a
stream is met, its bytes are peeked at, or a connection is accepted; an eventfd that was written is read; a lock of a
file that was released is acquired.
"""


class HappensBefore(NamedTuple):
    """An event of one process that happened before an event of another one."""

    process: int
    event: int
    """For a send, the first event after it began: its bytes can be received before it ends.

    For an end, the last event.
    """
    to_process: int
    to_event: int
    """The first event that ended after it. For a receive, its own event."""
    is_certain: bool
    """Whether no other send, or release, could have been the one."""
    kind: str
    """One of EDGE_KINDS."""
    after: int
    """Number of events of `process` that had ended by then."""
    signal: int = 0
    """The number of a signal."""


class BareTransfer(NamedTuple):
    """A transfer without bytes."""

    process: int
    end: Endpoint
    is_receive: bool
    event: int
    begun: int
    ticket: int


def bare_transfers(members: Iterable[Member], kind: str) -> Iterator[BareTransfer]:
    """Yield the transfers of endpoints of a kind, by process, in the order in which they began."""
    for member in members:
        ends = {end.number: end for end in member.endpoints if end.kind == kind}
        if not ends:
            continue
        columns = member.transfers
        for row, number in enumerate(columns.endpoint):
            if number in ends:
                is_receive = bool(columns.flags[row] & RECEIVES)
                place = (columns.event[row], columns.begun[row], columns.ticket[row])
                yield BareTransfer(member.process, ends[number], is_receive, *place)
