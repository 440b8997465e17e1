"""Find which connections to listening sockets of a group were accepted in a cut, and as which sockets.

A recording has the identity of a connection from its first use on. Before that, whoever accepted it knows the address
of the other side, but whoever began it knows its own address only if the program asked for it. The rest is told apart
by the order: connections are accepted in the order in which they were begun. Of two that were begun at the same time,
as far as the tickets of the group show, the program cannot know which was first.

A connection can also be closed by the side that began it before it is accepted: no process holds it in the cut, but
whoever has the listening socket accepts it later, and receives from it what was sent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from replaydbg.distributed.descriptors import SOCKET, ChannelEnd
from replaydbg.distributed.lock_ends import Clock
from replaydbg.distributed.matching.sides import DATAGRAMS
from replaydbg.recovery.recovery_line import RecoveryLine
from replaydbg.resources.kinds import OpenedSocket


@dataclass(frozen=True, slots=True)
class Connections:
    """Connections between processes of a group in a cut."""

    partners: dict[ChannelEnd, ChannelEnd] = field(default_factory=dict)
    """Of both ends of each that was accepted the other one, as far as it is known."""
    waiting: dict[ChannelEnd, ChannelEnd] = field(default_factory=dict)
    """Of the end that began each that was not accepted the listening socket; those that began first come first."""

    def pair(self, one: ChannelEnd, other: ChannelEnd) -> None:
        """Keep that two ends are those of one connection."""
        self.partners[one], self.partners[other] = other, one


@dataclass(slots=True)
class _Queue:
    """The connections to one listening socket in the cut, in the order in which they were begun, and accepted."""

    begun: list[ChannelEnd] = field(default_factory=list)
    accepted: dict[ChannelEnd, object] = field(default_factory=dict)
    """With the address of the other side, as Python has it."""


def find_connections(
    line: RecoveryLine,
    sockets: Mapping[ChannelEnd, OpenedSocket],
    listening_at: Callable[[object], ChannelEnd | None],
) -> Connections:
    """Return the connections in a cut; `sockets` are those that processes hold there.

    `listening_at` returns the listening socket of an address that one of them holds; None: no process has it.
    """
    found = Connections()
    queues = _queues(line, listening_at)
    left: dict[ChannelEnd, tuple[list[ChannelEnd], list[ChannelEnd]]] = {}
    for listener, queue in queues.items():
        unknown = [each for each in queue.begun if not _by_use_or_address(line, each, sockets, listener, queue, found)]
        left[listener] = unknown, [each for each in queue.accepted if each not in found.partners]
    unused = [end for end, opened in sockets.items() if _is_unused(line, end, opened) and end not in found.partners]
    elsewhere = [
        end for end in unused if not any(end in queue.begun or end in queue.accepted for queue in queues.values())
    ]
    # Its listening socket is closed, or known by another name: it can be the other side of any connection.
    is_certain = not any(sockets[end].is_accepted for end in elsewhere)
    for listener, (began, accepted) in left.items():
        _by_order(listener, began, accepted, found, is_certain=is_certain)
    rest = sorted((end for end in unused if end not in found.partners), key=lambda end: sockets[end].is_accepted)
    if len(rest) == 2 and [sockets[end].is_accepted for end in rest] == [False, True] and rest[0] not in found.waiting:
        found.pair(*rest)
    return found


def _is_unused(line: RecoveryLine, end: ChannelEnd, opened: OpenedSocket) -> bool:
    is_stream = end.kind == SOCKET and opened.peer is not None
    return is_stream and not line.ends.others(end) and (opened.is_accepted or line.ends.endpoint(end) is None)


def _queues(line: RecoveryLine, listening_at: Callable[[object], ChannelEnd | None]) -> dict[ChannelEnd, _Queue]:
    """Return what the processes of the group connected to, and accepted from, each listening socket until the cut."""
    queues: defaultdict[ChannelEnd, _Queue] = defaultdict(_Queue)
    begun: list[tuple[int, int, int, ChannelEnd, ChannelEnd]] = []
    accepted: list[tuple[int, int, int, ChannelEnd, ChannelEnd, object]] = []
    for number, member in line.members.items():
        opened, history = line.opened.member(number), line.ends.histories[number]
        clock = Clock(opened)
        own = range(opened.branch, member.position + 1)  # what it did before its fork is its parent's
        for end, contact in history.connections.items():
            identity = line.ends.endpoint(end)
            is_stream = identity is None or identity.kind not in DATAGRAMS
            listener = listening_at(contact.address) if is_stream and contact.event in own else None
            if listener is not None:
                begun.append((clock.before(contact.event), number, contact.event, end, listener))
        for listener, contacts in history.accepts.items():
            for end, contact in contacts.items():
                if contact.event in own:
                    moment = clock.before(contact.event), number, contact.event
                    accepted.append((*moment, end, listener, contact.address))
    for *_, end, listener in sorted(begun, key=lambda each: each[:3]):
        queues[listener].begun.append(end)
    for *_, end, listener, address in sorted(accepted, key=lambda each: each[:3]):
        queues[listener].accepted[end] = address
    return dict(queues)


def _by_use_or_address(
    line: RecoveryLine,
    end: ChannelEnd,
    sockets: Mapping[ChannelEnd, OpenedSocket],
    listener: ChannelEnd,
    queue: _Queue,
    found: Connections,
) -> bool:
    """Keep what became of a connection, if its use or its address shows it; return whether one of them does."""
    identity, opened = line.ends.endpoint(end), sockets.get(end)
    others = [each for each in line.ends.others(end) or () if each.kind == SOCKET]
    if others:
        was_accepted = next((each for each in others if _is_before(line, each)), None)
    elif identity is not None and identity.kind == "tcp":
        was_accepted = next((each for each, peer in queue.accepted.items() if _is_of(peer, identity.own)), None)
    elif opened is not None and isinstance(opened.bound, tuple) and opened.bound[1:2] > (0,):
        was_accepted = next((each for each, peer in queue.accepted.items() if peer == opened.bound), None)
    else:
        return False
    if was_accepted is None:
        found.waiting[end] = listener
    else:
        found.pair(end, was_accepted)
    return True


def _is_before(line: RecoveryLine, end: ChannelEnd) -> bool:
    owner = line.members.get(end.process)
    return owner is not None and end.event <= owner.position


def _is_of(address: object, name: str) -> bool:
    """Whether an address as `accept` returns it is the one of an end."""
    return (
        isinstance(address, tuple) and len(address) >= 2 and str(address[0]) in name and name.endswith(f":{address[1]}")
    )


def _by_order(
    listener: ChannelEnd,
    began: list[ChannelEnd],
    accepted: list[ChannelEnd],
    found: Connections,
    *,
    is_certain: bool,
) -> None:
    """Keep what became of the connections of one listening socket that neither use nor address tell apart."""
    if len(accepted) > len(began):
        return  # somebody outside of the group has connected, too
    for pair in zip(began, accepted, strict=False):
        found.pair(*pair)
    for end in began[len(accepted) :] if is_certain else ():
        found.waiting[end] = listener
