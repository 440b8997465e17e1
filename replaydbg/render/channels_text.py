"""Channels of a group, and the messages in them, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replaydbg.distributed.edges import HappensBefore
from replaydbg.distributed.matching.channels import MessageChannel
from replaydbg.distributed.matching.columns import Moves
from replaydbg.distributed.matching.matching import Matched
from replaydbg.events.show import printable
from replaydbg.groups.messages import Contradicted, Message, MessageEnd, MessagePart
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.render.paths import short_path

COLUMNS = ("#", "kind", "channel", "from", "to", "messages", "bytes", "state")
RIGHT = ("#", "messages", "bytes")
"""The columns that hold numbers."""

EDGE_COLUMNS = ("kind", "from", "to", "certainty")
"""Of what orders processes without bytes."""

OUTSIDE = "outside"
"""A process that is not recorded."""


def channel_row(found: Matched) -> tuple[str, ...]:
    """Return the cells of a channel."""
    channel = found.channel
    # What was sent is known of a writer that is recorded, otherwise what was received.
    moves, count = (found.sends, found.sent) if channel.senders else (found.receives, found.received)
    return (
        str(channel.number),
        channel.kind,
        printable(channel.name),
        processes_text(channel.senders),
        processes_text(channel.receivers),
        f"{len(moves) + (len(moves.open) if channel.senders else 0):,}",
        f"{count:,}",
        ", ".join(_states(found)),
    )


def edge_row(edge: HappensBefore) -> tuple[str, ...]:
    """Return the cells of what orders two processes."""
    return (
        f"{edge.kind} {edge.signal}" if edge.signal else edge.kind,
        f"{edge.process}@{edge.event}",
        f"{edge.to_process}@{edge.to_event}",
        "certain" if edge.is_certain else "ambiguous",
    )


def processes_text(numbers: Sequence[int]) -> str:
    """Return the processes at an end of a channel."""
    return ", ".join(map(str, numbers)) or OUTSIDE


def _states(found: Matched) -> Iterator[str]:
    channel = found.channel
    if found.contradiction is not None:
        yield f"unsure from byte {found.contradiction.first:,}"
    if found.early is not None:
        yield "received before it was sent"
    if channel.doubt:
        yield "ambiguous use of the address"
    if found.ambiguous:
        yield f"{_counted(found.ambiguous, 'receive', 'receives')} ambiguous"
    is_outside = not channel.senders or not channel.receivers
    what = "datagram" if channel.is_datagram else "byte"
    if is_outside:
        yield OUTSIDE
    elif found.contradiction is None:
        if found.lost:
            yield f"{_counted(found.lost, what, what + 's')} never received"
        if found.from_nowhere:
            yield f"{_counted(found.from_nowhere, what, what + 's')} from outside"
        if not found.lost and not found.from_nowhere:
            yield "all received"
    yield from _waiting(found.sends, "to send")
    yield from _waiting(found.receives, "to receive")


def _waiting(moves: Moves, what: str) -> Iterator[str]:
    for number in sorted({moves.members[index].process for index, _ in moves.open}):
        yield f"process {number} was waiting {what}"


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def message_lines(opened: OpenedGroup, messages: Sequence[Message]) -> Iterator[str]:
    """Yield a line for each part of the messages of an event: where, which bytes, and the text of the line."""
    for message in messages:
        for part in message.parts:
            cells = [end_text(opened, part.end), _bytes_text(message.channel, part)]
            if part.certainty != "certain":
                cells.append(part.certainty)
            if part.end.text:
                cells.append(printable(part.end.text))
            yield "  ".join(cells)


def end_text(opened: OpenedGroup, end: MessageEnd, separator: str = "  ") -> str:
    """Return a send or a receive, such as `2@898  bank.py:33`."""
    if not end.event:
        return f"{end.process}@{end.begun + 1}  (unfinished call)"
    if end.site is None or end.site.file is None:
        return f"{end.process}@{end.event}"
    file = printable(short_path(end.site.file, opened.cwd[end.process]))
    return f"{end.process}@{end.event}{separator}{file}:{end.site.line}"


def end_line(opened: OpenedGroup, end: MessageEnd) -> str:
    """Return a send or a receive with the text of its line."""
    return "  ".join(filter(None, (end_text(opened, end), printable(end.text))))


def _bytes_text(channel: MessageChannel, part: MessagePart) -> str:
    name = f"{channel.kind} {printable(channel.name)}"
    if channel.is_datagram:
        return f"{_counted(part.length, 'byte', 'bytes')} of {name}"
    return f"bytes {part.first:,}..{part.first + part.length:,} of {name}"


def message_remarks(messages: Sequence[Message]) -> Iterator[str]:
    """Yield sentences about what is not known of messages."""
    for message in messages:
        channel = message.channel
        name = f"{channel.kind} {channel.name}"
        if message.peeks:
            yield f"{name}: this receive took nothing (MSG_PEEK)."
        elif not message.length and not channel.is_datagram:
            yield f"{name}: no bytes" + (", the end of the stream." if message.is_receive else ".")
        elif message.unmatched:
            yield f"{name}: {_unmatched(message)}"
        if message.passed:
            ends = ", ".join(f"{end.kind} {end.path or end.own}" for end in message.passed)
            yield f"{name}: the message {'brought' if message.is_receive else 'carried'} descriptors of {ends}."
        certainties = {part.certainty for part in message.parts}
        if "ambiguous" in certainties:
            fits = "several sends match" if message.is_receive else "several receives may have taken"
            yield f"{name}: ambiguous: {channel.doubt or f'{fits} these bytes (see messages#ambiguous-message)'}."
        if "unsure" in certainties:
            yield f"{name}: unsure: the two sides already differ at an earlier byte (see messages#unsure-channel)."


def _unmatched(message: Message) -> str:
    channel = message.channel
    count = "this datagram" if channel.is_datagram else _counted(message.unmatched, "byte", "bytes")
    verb = "was" if channel.is_datagram or message.unmatched == 1 else "were"
    if message.is_receive:
        return f"{count} {verb} sent by no recorded process."
    if not channel.receivers:
        return f"{count} {verb} received by no recorded process."
    return f"{count} {verb} never received."


def channel_remarks(opened: OpenedGroup, found: Matched, apart: Contradicted | None) -> Iterator[str]:
    """Yield sentences about what is wrong with a channel."""
    name = f"{found.channel.kind} {found.channel.name}"
    if apart is not None:
        send, receive = (end_text(opened, end, ", ") for end in (apart.send, apart.receive))
        yield (
            f"{name}: bytes {apart.first:,}..{apart.last:,}: what was sent (up to {send}) differs from what was "
            f"received (up to {receive}). Matches from byte {apart.first:,} on are unsure."
        )
    if found.early is not None:
        yield (
            f"{name}: a message appears to be received before it was sent: replaydbg matched it wrongly, or a "
            "recording was changed. If you made the recordings, please report this."
        )
    if found.channel.doubt:
        yield f"{name}: {found.channel.doubt}."
