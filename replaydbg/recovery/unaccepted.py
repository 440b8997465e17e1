"""Find connections between processes of a group that were closed by the side that began them before they were accepted.

No process holds such a connection in the cut, but whoever has the listening socket accepts it later, and receives from
it what was sent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from replaydbg.distributed.descriptors import SOCKET, ChannelEnd
from replaydbg.errors import CannotResume
from replaydbg.recovery.recovery_line import RecoveryLine


@dataclass(slots=True)
class _Queue:
    """The connections to one listening socket in a cut."""

    accepted: int = 0
    """How many connections are known to be accepted."""
    waiting: list[ChannelEnd] = field(default_factory=list)
    """Those that are known not to be."""
    unknown: list[ChannelEnd] = field(default_factory=list)


def closed_connections(
    line: RecoveryLine,
    held: Collection[ChannelEnd],
    sending: Collection[ChannelEnd],
    listening_at: Callable[[object], ChannelEnd | None],
) -> Iterator[tuple[ChannelEnd, ChannelEnd]]:
    """Yield connections that are closed and not accepted in a cut, each with its listening socket, which is held.

    `held` are the ends that processes hold, `sending` those with bytes in flight; `listening_at` returns the listening
    socket of an address. Raises CannotResume if it is not known which of several connections were accepted.
    """
    accepts = _accepts(line)
    queues: defaultdict[ChannelEnd, _Queue] = defaultdict(_Queue)
    for end, listener in _connections(line, listening_at):
        _add(line, end, queues[listener], accepts[listener])
    for listener, queue in sorted(queues.items()):
        for end in (*queue.waiting, *_unknown(line, queue, len(accepts[listener]), held, sending)):
            if end not in held:
                yield end, listener


def _accepts(line: RecoveryLine) -> defaultdict[ChannelEnd, list[object]]:
    """Return the addresses from which each listening socket has accepted connections in the cut."""
    found: defaultdict[ChannelEnd, list[object]] = defaultdict(list)
    for number, member in line.members.items():
        branch = line.opened.member(number).branch  # what it did before its fork is its parent's
        for listener, accepts in line.ends.histories[number].accepts.items():
            found[listener] += [each.address for each in accepts if branch <= each.event <= member.position]
    return found


def _connections(
    line: RecoveryLine, listening_at: Callable[[object], ChannelEnd | None]
) -> Iterator[tuple[ChannelEnd, ChannelEnd]]:
    """Yield the sockets that were connected in the cut to listening sockets of the group."""
    for number, member in line.members.items():
        branch = line.opened.member(number).branch
        for end, contact in line.ends.histories[number].connections.items():
            listener = listening_at(contact.address) if branch <= contact.event <= member.position else None
            if listener is not None:
                yield end, listener


def _add(line: RecoveryLine, end: ChannelEnd, queue: _Queue, accepts: list[object]) -> None:
    identity = line.ends.endpoint(end)
    others = [each for each in line.ends.others(end) or () if each.kind == SOCKET]
    if any(_is_before(line, each) for each in others):
        queue.accepted += 1
    elif others:  # it is accepted after the cut
        queue.waiting.append(end)
    elif identity is not None and identity.kind == "tcp":
        if any(_is_of(address, identity.own) for address in accepts):
            queue.accepted += 1
        else:
            queue.waiting.append(end)
    else:
        queue.unknown.append(end)


def _is_before(line: RecoveryLine, end: ChannelEnd) -> bool:
    owner = line.members.get(end.process)
    return owner is not None and end.event <= owner.position


def _is_of(address: object, name: str) -> bool:
    """Whether an address as `accept` returns it is the one of an end."""
    return (
        isinstance(address, tuple) and len(address) >= 2 and str(address[0]) in name and name.endswith(f":{address[1]}")
    )


def _unknown(
    line: RecoveryLine, queue: _Queue, accepted: int, held: Collection[ChannelEnd], sending: Collection[ChannelEnd]
) -> list[ChannelEnd]:
    """Return those that wait, by their number, of the connections of which nothing shows whether they were accepted.

    They are accepted in the order in which they were begun, which is known if one process did that.
    """
    count = len(queue.unknown) - max(accepted - queue.accepted, 0)
    if count <= 0:
        return []
    is_in_order = len({each.process for each in queue.unknown}) == 1
    makes_no_difference = not any(each in held or each in sending for each in queue.unknown)
    is_known = count == len(queue.unknown) or is_in_order or makes_no_difference
    if not is_known:
        reason = "some connections were closed, and it is not known which of them had been accepted"
        raise CannotResume(line.name, reason)
    return queue.unknown[-count:]
