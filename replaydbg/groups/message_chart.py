"""The messages between the processes of a group in the order in which they were sent, for a chart."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from replaydbg.distributed.matching import Matched
from replaydbg.distributed.segments import AMBIGUOUS, SURE
from replaydbg.groups.messages import CERTAINTIES, MessageEnd
from replaydbg.groups.opened_group import OpenedGroup

MOST_SEGMENTS = 500_000
"""Pieces of messages that are read: more take too long."""


class ChartedMessage(NamedTuple):
    """Bytes that one process received of one send, or the start of a process."""

    ticket: int
    """When it was sent, by the clock of the group."""
    kind: str
    """The kind of its channel, or how the process was started."""
    source: MessageEnd
    target: MessageEnd
    """The first receive; of a start, the new process."""
    length: int
    certainty: str
    """One of CERTAINTIES."""
    is_start: bool = False


class MessageChart(NamedTuple):
    """The processes, and what went from one to another."""

    processes: tuple[int, ...]
    """Those with a recording."""
    messages: tuple[ChartedMessage, ...]
    is_complete: bool
    """Whether all messages are there."""


def message_chart(opened: OpenedGroup) -> MessageChart:
    """Return the messages that went from one recorded process to another, with the starts of processes."""
    between = [each for each in opened.matching.channels if each.senders and each.receivers]
    pieces = (piece for channel in between for piece in _pieces(opened, opened.matching.match(channel)))
    found = list(islice(pieces, MOST_SEGMENTS + 1))
    is_complete = len(found) <= MOST_SEGMENTS
    joined: dict[tuple[MessageEnd, int, str], ChartedMessage] = {}
    for piece in found[:MOST_SEGMENTS]:
        # A message that is read in several pieces is one.
        key = (piece.source, piece.target.process, piece.kind)
        first = joined.get(key)
        joined[key] = piece if first is None else first._replace(length=first.length + piece.length)
    messages = [each for each in joined.values() if each.source.process != each.target.process]
    messages.sort(key=lambda each: (each.ticket, each.source.process))
    numbers = tuple(each.process for each in opened.matching.members)
    return MessageChart(numbers, tuple(_with_starts(opened, messages)), is_complete)


def _pieces(opened: OpenedGroup, found: Matched) -> Iterator[ChartedMessage]:
    members, segments = opened.matching.members, found.segments
    is_doubted = found.early is not None or bool(found.channel.doubt)
    for at in range(len(segments)):
        sender, sent = found.sends.place(segments.send[at])
        receiver, got = found.receives.place(segments.receive[at])
        sends, receives = members[sender].transfers, members[receiver].transfers
        certainty = segments.certainty[at]
        yield ChartedMessage(
            sends.ticket[sent],
            found.channel.kind,
            MessageEnd(members[sender].process, sends.event[sent], sends.begun[sent], None, ""),
            MessageEnd(members[receiver].process, receives.event[got], receives.begun[got], None, ""),
            segments.length[at],
            CERTAINTIES[AMBIGUOUS if certainty == SURE and is_doubted else certainty],
        )


def _with_starts(opened: OpenedGroup, messages: list[ChartedMessage]) -> list[ChartedMessage]:
    """Add the starts of processes: each before what the parent, or the child, did next."""
    known = {each.process for each in opened.matching.members}
    starts = []
    for process in opened.group.processes:
        if process.number in known and process.parent in known:
            source = MessageEnd(process.parent, process.event, max(process.event - 1, 0), None, "")
            target = MessageEnd(process.number, 0, 0, None, "")
            at = _ticket_at(opened, process.parent, process.event)
            starts.append(ChartedMessage(at, process.how, source, target, 0, CERTAINTIES[0], is_start=True))
    # A start has no ticket of its own: it comes after the last transfer of its parent before it.
    return sorted([*messages, *starts], key=lambda each: (each.ticket, each.is_start))


def _ticket_at(opened: OpenedGroup, process: int, event: int) -> int:
    """Return the highest ticket of a process up to one of its events."""
    process, event = opened.owner(process, event)
    index = opened.index_of(process)
    if index is None:
        return 0
    columns = opened.matching.members[index].transfers
    pairs = zip(columns.event, columns.ticket, strict=True)
    return max((ticket for number, ticket in pairs if 0 < number <= event), default=0)
