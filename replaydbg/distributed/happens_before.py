"""Order the events of different processes by messages, births, ends, signals, semaphores, eventfds and locks.

Tickets alone would order more than happened so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from replaydbg.distributed.edges import BareTransfer, HappensBefore, bare_transfers
from replaydbg.distributed.matching.columns import Member
from replaydbg.distributed.matching.matching import GroupMatching, Matched
from replaydbg.distributed.matching.segments import SURE
from replaydbg.distributed.releases import eventfd_edges, lock_edges, semaphore_edges


class ProgramStart(NamedTuple):
    """A process that did not come from a fork: an event of a recorded one started it, or was replaced by it."""

    process: int
    event: int
    """The event that started it; if `replaces`, the last one before it was replaced."""
    child: int
    replaces: bool = False


def edges_between(group: GroupMatching, starts: Sequence[ProgramStart] = ()) -> Iterator[HappensBefore]:
    """Yield the edges between different processes: those without bytes, then messages by channel.

    Each pair of events comes once in a channel.
    """
    yield from edges_without_bytes(group.members, starts)
    for channel in group.channels:
        yield from _messages(group.match(channel))


def edges_without_bytes(members: Sequence[Member], starts: Sequence[ProgramStart] = ()) -> Iterator[HappensBefore]:
    """Yield the edges between different processes that are no messages."""
    known = {member.process: member for member in members}
    for member in members:
        if member.parent in known and member.branch:
            number = member.branch
            yield HappensBefore(member.parent, number, member.process, number, True, "start", number - 1)
    for start in starts:
        if start.process in known and start.child in known and start.event > 0:
            after = start.event if start.replaces else start.event - 1
            yield HappensBefore(start.process, start.event, start.child, 1, True, "start", after)
    yield from _ends(known)
    yield from _signals(members)
    yield from semaphore_edges(members)
    yield from eventfd_edges(members)
    yield from lock_edges(members)
    yield from _files(members)


def _messages(found: Matched) -> Iterator[HappensBefore]:
    before = None
    segments = found.segments
    for send, receive, certainty in zip(segments.send, segments.receive, segments.certainty, strict=True):
        index, row = found.sends.place(send)
        to_index, to_row = found.receives.place(receive)
        member, target = found.sends.members[index], found.sends.members[to_index]
        if member.process == target.process:
            continue
        begun = member.transfers.begun[row]
        edge = HappensBefore(
            member.process,
            begun + 1,
            target.process,
            target.transfers.event[to_row],
            certainty == SURE and not found.channel.doubt,
            "message",
            begun,
        )
        if edge != before:
            yield edge
        before = edge


# ---- without bytes ----


def number_in(text: str) -> int:
    """Return the number that a text has; 0: none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _ends(known: dict[int, Member]) -> Iterator[HappensBefore]:
    """Yield for each process that has ended who was the first to notice in each other process."""
    seen: set[tuple[int, int]] = set()
    for row in bare_transfers(known.values(), "process"):
        number = number_in(row.end.own)
        ended = known.get(number)
        if (
            ended is None
            or number == row.process
            or not row.event
            or not row.is_receive
            or (number, row.process) in seen
        ):
            continue
        if ended.events < max(ended.branch, 1):  # killed before it had an event of its own
            continue
        seen.add((number, row.process))
        yield HappensBefore(number, ended.events, row.process, row.event, True, "end", ended.events)


def _signals(members: Sequence[Member]) -> Iterator[HappensBefore]:
    """Yield for each handler that ran a signal that was certainly sent before.

    Signals that come before a handler could run are one. So the n-th handler needed at least n of them, and the n-th
    one is the last of which that is certain: later ones come after it anyway, in the same process.
    """
    sends: dict[tuple[int, int], list[tuple[str, BareTransfer]]] = {}
    handlers = []
    for row in bare_transfers(members, "signal"):
        target, _, text = row.end.own.partition(":")
        signum = number_in(text)
        if signum and row.is_receive:
            handlers.append((signum, row))
        elif signum:
            sends.setdefault((row.process, signum), []).append((target, row))
    expected: dict[tuple[int, int, int], Iterator[BareTransfer]] = {}
    for signum, row in handlers:
        sender = number_in(row.end.peer)
        if not row.event or sender in (0, row.process):
            continue
        key = (sender, row.process, signum)
        if key not in expected:
            expected[key] = _sent_to(sends.get((sender, signum), []), row.process)
        sent = next(expected[key], None)
        if sent is not None and sent.ticket < row.ticket:
            yield HappensBefore(sender, sent.begun + 1, row.process, row.event, True, "signal", sent.begun, signum)


def _sent_to(sent: Iterable[tuple[str, BareTransfer]], process: int) -> Iterator[BareTransfer]:
    """Yield the signals that may have been for a process: those to a group of processes, too."""
    for target, row in sent:
        if target == str(process) or target.startswith("-"):
            yield row


def _files(members: Sequence[Member]) -> Iterator[HappensBefore]:
    """Yield for each file that is opened to be read who had closed it last before, after it could have written to it.

    Never certain: it need not have written what is read, and the inode can be another file's by now.
    """
    uses: dict[str, list[BareTransfer]] = {}
    for row in bare_transfers(members, "file"):
        if row.event and row.end.own:
            uses.setdefault(row.end.own, []).append(row)
    for rows in uses.values():
        rows.sort(key=lambda row: row.ticket)
        last = None
        for row in rows:
            if not row.is_receive:
                last = row
            elif last is not None and last.process != row.process:
                yield HappensBefore(last.process, last.begun + 1, row.process, row.event, False, "file", last.begun)
