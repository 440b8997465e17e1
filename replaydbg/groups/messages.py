"""Who sent the bytes that an event received, and who received those that it sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from replaydbg.distributed.matching.channels import MessageChannel
from replaydbg.distributed.matching.matching import MOST_CANDIDATES, Matched
from replaydbg.distributed.matching.segments import AMBIGUOUS, SURE, Segment, positions
from replaydbg.errors import UsageError
from replaydbg.events.records import Site
from replaydbg.events.transfers import Endpoint
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.log.transfers import PASSES, PEEKS, RECEIVES

CERTAINTIES = ("certain", "ambiguous", "unsure")
"""How certain an answer is: certain; one of several that fit; behind a contradiction."""

WITHOUT_BYTES = ("process", "signal", "semaphore", "file", "eventfd", "file-lock", "stream")
"""Kinds of endpoints through which no messages go."""

MOST_EVENTS = 1 << 63
"""Numbers of events are below."""


class MessageEnd(NamedTuple):
    """A send or a receive."""

    process: int
    event: int
    """0: it had not ended when the recording ended."""
    begun: int
    """Number of events before it began."""
    site: Site | None
    """The place in the program; None: unknown, such as for a call that had not ended."""
    text: str
    """The text of the line; empty: unknown."""


class MessagePart(NamedTuple):
    """Bytes that one receive took from one send."""

    end: MessageEnd
    """The other end: the send for a receive, the receive for a send."""
    first: int
    """Offset of the first byte in the direction of the channel; for a datagram, in the datagram."""
    length: int
    certainty: str
    """One of CERTAINTIES."""


class Message(NamedTuple):
    """A send or a receive of an event with what is known of the other end."""

    channel: MessageChannel
    is_receive: bool
    length: int
    """Number of bytes that it moved."""
    parts: tuple[MessagePart, ...]
    unmatched: int
    """Number of its bytes of which the other end is not known."""
    peeks: bool
    """Whether it took nothing (MSG_PEEK)."""
    passed: tuple[Endpoint, ...] = ()
    """The ends of channels whose descriptors came or went with it."""


class Contradicted(NamedTuple):
    """A send and a receive that end at the same byte, with different bytes before it."""

    send: MessageEnd
    receive: MessageEnd
    first: int
    """Offset up to which both sides agree."""
    last: int


def messages_of(
    opened: OpenedGroup, process: int, event: int, *, is_receive: bool, is_at_prompt: bool = False
) -> list[Message]:
    """Return what an event received, or sent, with the other ends. Raises UsageError if it did neither."""
    if event < 1:
        raise UsageError(f"EVENT must be at least 1 (got {event}).")
    if event >= MOST_EVENTS:
        raise UsageError(_no_event(f"{opened.name}/{process}", event))
    process, event = opened.owner(process, event)
    index = opened.index_of(process)
    if index is None:
        problem = opened.problems.get(process, "")
        raise UsageError(f"{opened.name} has no readable recording of process {process}. {problem}".rstrip())
    member = opened.matching.members[index]
    columns = member.transfers
    wanted = _rows(opened, process, event, is_receive=is_receive)
    if not wanted:
        if _rows(opened, process, event, is_receive=not is_receive):
            raise UsageError(_other_way(f"{opened.name}/{process}", event, is_receive, is_at_prompt))
        raise UsageError(_why_not(opened, process, event, is_receive=is_receive))
    found = []
    for row in wanted:
        message = _message(opened, index, row, is_receive=is_receive)
        if columns.flags[row] & PASSES:
            passed = tuple(member.endpoints[end - 1] for number, end in columns.passed if number == event)
            message = message._replace(passed=passed)
        found.append(message)
    return found


def moved_events(opened: OpenedGroup, process: int, events: Iterable[int], *, is_receive: bool) -> list[int]:
    """Return those of a process's events that received, or sent, something through a channel."""
    moved: dict[int, set[int]] = {}
    found = []
    for event in events:
        owner, number = opened.owner(process, event)
        if owner not in moved:
            moved[owner] = set(_all_moved(opened, owner, is_receive=is_receive))
        if number in moved[owner]:
            found.append(event)
    return found


def _all_moved(opened: OpenedGroup, process: int, *, is_receive: bool) -> Iterator[int]:
    index = opened.index_of(process)
    if index is None:
        return
    columns = opened.matching.members[index].transfers
    for row, (event, flags) in enumerate(zip(columns.event, columns.flags, strict=True)):
        if event and bool(flags & RECEIVES) == is_receive and _has_bytes(opened, index, row):
            yield event


def messages_received(opened: OpenedGroup, process: int, events: Iterable[int]) -> dict[int, list[Message]]:
    """Return what events received through channels, by event; events that received nothing are missing."""
    moved = moved_events(opened, process, events, is_receive=True)
    return {event: messages_of(opened, process, event, is_receive=True) for event in moved}


def _rows(opened: OpenedGroup, process: int, event: int, *, is_receive: bool) -> list[int]:
    """Return the transfers of an event in one direction."""
    index = opened.index_of(process)
    if index is None or not 0 < event < MOST_EVENTS:
        return []
    columns = opened.matching.members[index].transfers
    return [
        row
        for row in positions(columns.event, event)
        if bool(columns.flags[row] & RECEIVES) == is_receive and _has_bytes(opened, index, row)
    ]


def _has_bytes(opened: OpenedGroup, index: int, row: int) -> bool:
    """Whether a transfer of a member moved bytes through a channel, and not a signal or the end of a process."""
    member = opened.matching.members[index]
    return member.endpoints[member.transfers.endpoint[row] - 1].kind not in WITHOUT_BYTES


def _no_event(name: str, event: int) -> str:
    return f"{name} has no event {event}."


def _other_way(name: str, event: int, is_receive: bool, is_at_prompt: bool) -> str:
    did, command = ("sent", "receiver") if is_receive else ("received", "sender")
    line = f"{command} {event}" if is_at_prompt else f"replaydbg {command} {name} {event}"
    return f"Event {event} of {name} {did} something. Use `{line}`."


def _why_not(opened: OpenedGroup, process: int, event: int, *, is_receive: bool) -> str:
    name = f"{opened.name}/{process}"
    if opened.site(process, event) is None:
        return _no_event(name, event)
    return f"Event {event} of {name} {'received' if is_receive else 'sent'} nothing through a channel."


def _message(opened: OpenedGroup, index: int, row: int, *, is_receive: bool) -> Message:
    columns = opened.matching.members[index].transfers
    endpoint, flags = columns.endpoint[row], columns.flags[row]
    for channel in opened.matching.channels:
        for part in channel.receives if is_receive else channel.sends:
            if part.member == index and _has(part.rows, row):
                return _matched(opened, channel, index, row, is_receive=is_receive)
    known = opened.matching.members[index].endpoints[endpoint - 1]
    nowhere = MessageChannel(0, known.kind, known.own, known.peer, known.path, False, (), (), (), (), "")
    return Message(nowhere, is_receive, columns.length[row], (), 0, bool(flags & PEEKS))


def _has(rows: Sequence[int], row: int) -> bool:
    try:
        rows.index(row)
    except ValueError:
        return False
    return True


def _matched(opened: OpenedGroup, channel: MessageChannel, index: int, row: int, *, is_receive: bool) -> Message:
    found = opened.matching.match(channel)
    side = found.receives if is_receive else found.sends
    length = opened.matching.members[index].transfers.length[row]
    move = side.find(index, row)
    if move is None:
        return Message(channel, is_receive, length, (), 0, False)
    segments = found.segments
    own = segments.of_receive(move) if is_receive else segments.of_send(move)
    _read_sites(opened, found, own, is_receive=is_receive)
    parts = [part for at in own for part in _parts(opened, found, at, is_receive=is_receive)]
    if not is_receive:
        others = [at for at in segments.in_group_of(move) if at not in own and move in found.candidates(at)]
        parts += [_part(opened, found, segments[at], is_receive=False) for at in others[:MOST_CANDIDATES]]
    matched = sum(segments.length[at] for at in own) if not channel.is_datagram else length if parts else 0
    return Message(channel, is_receive, length, tuple(_merged(parts)), max(length - matched, 0), False)


def _read_sites(opened: OpenedGroup, found: Matched, own: list[int], *, is_receive: bool) -> None:
    """Read the sites of the other ends at once."""
    segments = found.segments
    moves = {segments.send[at] if is_receive else segments.receive[at] for at in own}
    if is_receive:
        moves.update(send for at in own if at in segments.groups for send in found.candidates(at))
    places = map((found.sends if is_receive else found.receives).place, sorted(moves))
    members = opened.matching.members
    opened.read_sites((members[index].process, members[index].transfers.event[row]) for index, row in places)


def _parts(opened: OpenedGroup, found: Matched, at: int, *, is_receive: bool) -> Iterator[MessagePart]:
    segment = found.segments[at]
    if segment.certainty == AMBIGUOUS and is_receive:
        for send in found.candidates(at):
            yield _part(opened, found, segment._replace(send=send), is_receive=True)
    else:
        yield _part(opened, found, segment, is_receive=is_receive)


def _part(opened: OpenedGroup, found: Matched, segment: Segment, *, is_receive: bool) -> MessagePart:
    certainty = segment.certainty
    if certainty == SURE and (found.early is not None or found.channel.doubt):
        certainty = AMBIGUOUS
    end = end_of(opened, found, segment.send if is_receive else segment.receive, is_send=is_receive)
    return MessagePart(end, segment.first, segment.length, CERTAINTIES[certainty])


def _merged(parts: list[MessagePart]) -> Iterator[MessagePart]:
    """Join bytes that are next to each other and have the same other end."""
    for _, group in groupby(parts, key=lambda part: (part.end, part.certainty)):
        held: MessagePart | None = None
        for each in group:
            if held is not None and held.first + held.length == each.first:
                held = held._replace(length=held.length + each.length)
                continue
            if held is not None:
                yield held
            held = each
        if held is not None:
            yield held


def end_of(opened: OpenedGroup, found: Matched, move: int, *, is_send: bool) -> MessageEnd:
    """Return a send or a receive of a channel."""
    index, row = (found.sends if is_send else found.receives).place(move)
    member = opened.matching.members[index]
    event, begun = member.transfers.event[row], member.transfers.begun[row]
    site = opened.site(member.process, event) if event else None
    return MessageEnd(member.process, event, begun, site, opened.line(member.process, site) if site is not None else "")


def contradicted(opened: OpenedGroup, found: Matched) -> Contradicted | None:
    """Return where both sides of a channel differ; None: nowhere."""
    at = found.contradiction
    if at is None:
        return None
    send, receive = (
        end_of(opened, found, move, is_send=is_send) for move, is_send in ((at.send, True), (at.receive, False))
    )
    return Contradicted(send, receive, at.first, at.last)
