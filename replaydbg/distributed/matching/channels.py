"""Group the endpoints of all processes into channels: one direction between two ends."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from replaydbg.distributed.matching.addresses import is_wildcard, known_address, plain_address
from replaydbg.distributed.matching.columns import NEVER, Member, Part
from replaydbg.distributed.matching.pairing import ConnectionPair, pair_sockets
from replaydbg.distributed.matching.sides import DATAGRAMS, PIPES, ChannelSide, Datagrams, by_address, find_sides


@dataclass(frozen=True, slots=True)
class MessageChannel:
    """One direction between two ends."""

    number: int
    """From 1, in the order of the first transfers."""
    kind: str
    """The kind of its endpoints."""
    own: str
    """The identity of the end that sends; empty: unknown."""
    peer: str
    """The identity of the end that receives; empty: unknown."""
    path: str
    """The path of a fifo or of a unix socket; empty for others."""
    is_urgent: bool
    """Whether it carries urgent data (MSG_OOB)."""
    sends: tuple[Part, ...]
    receives: tuple[Part, ...]
    senders: tuple[int, ...]
    """The numbers of the processes that had the end that sends; empty: none that is recorded."""
    receivers: tuple[int, ...]
    """The numbers of the processes that had the end that receives."""
    doubt: str
    """Why it is not certain that both ends belong together; empty: it is."""

    @property
    def is_datagram(self) -> bool:
        """Whether it carries whole messages, of which some can be lost."""
        return self.kind in DATAGRAMS

    @property
    def name(self) -> str:
        """The name without the kind, such as `13:77` or `127.0.0.1:38262 -> 127.0.0.1:33759`."""
        urgent = " (urgent)" if self.is_urgent else ""
        if self.kind in PIPES or (self.is_datagram and not self.own):
            return (self.path or self.own or self.peer) + urgent
        ends = f"{self.own or '?'} -> {self.peer or '?'}"
        return (f"{ends} {self.path}" if self.path else ends) + urgent


def find_channels(members: Sequence[Member]) -> list[MessageChannel]:
    """Return the channels of a group."""
    sides, datagrams = find_sides(members)
    found = [*_pipes(members, sides), *_connections(members, sides), *_datagrams(members, datagrams)]
    found.sort(key=lambda each: (_first_ticket(members, each), each.kind, each.own, each.peer, each.is_urgent))
    return [replace(each, number=number) for number, each in enumerate(found, 1)]


def _first_ticket(members: Sequence[Member], channel: MessageChannel) -> int:
    parts = (*channel.sends, *channel.receives)
    return min((members[part.member].transfers.ticket[part.rows[0]] or NEVER for part in parts), default=NEVER)


def _numbers(members: Sequence[Member], indexes: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted({members[index].process for index in indexes}))


def _pipes(members: Sequence[Member], sides: list[ChannelSide]) -> Iterator[MessageChannel]:
    for side in sides:
        if side.kind not in PIPES:
            continue
        for is_urgent in side.is_urgent:
            sends = side.parts(is_receive=False, is_urgent=is_urgent)
            receives = side.parts(is_receive=True, is_urgent=is_urgent)
            writers, readers = (_numbers(members, (part.member for part in each)) for each in (sends, receives))
            yield MessageChannel(
                0,
                side.kind,
                side.own,
                side.own,
                side.path,
                is_urgent,
                tuple(sends),
                tuple(receives),
                writers,
                readers,
                "",
            )


def _connections(members: Sequence[Member], sides: list[ChannelSide]) -> Iterator[MessageChannel]:
    sockets = [side for side in sides if side.kind not in PIPES]
    for pair in pair_sockets(members, sockets):
        one, other = pair.one, pair.other
        yield from _direction(members, one, other, pair)
        if other is not one:
            yield from _direction(members, other, one, pair)


def _direction(
    members: Sequence[Member], source: ChannelSide | None, target: ChannelSide | None, pair: ConnectionPair
) -> Iterator[MessageChannel]:
    known = source or target
    assert known is not None, pair
    own, peer = (source.own, source.peer) if source is not None else (known.peer, known.own)
    path = (source.path if source is not None else "") or (target.path if target is not None else "")
    for is_urgent in (False, True):
        sends = source.parts(is_receive=False, is_urgent=is_urgent) if source is not None else []
        receives = target.parts(is_receive=True, is_urgent=is_urgent) if target is not None else []
        if not sends and not receives:
            continue
        yield MessageChannel(
            0,
            known.kind,
            own,
            peer or (target.own if target is not None else ""),
            path,
            is_urgent,
            tuple(sends),
            tuple(receives),
            _numbers(members, source.members) if source is not None else (),
            _numbers(members, target.members) if target is not None else (),
            pair.doubt,
        )


class _Flow:
    """Datagrams from one address to another."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.sends: dict[int, array[int]] = {}
        self.receives: dict[int, array[int]] = {}

    def add(self, member: int, rows: array[int], *, is_receive: bool) -> None:
        """Add datagrams of a process."""
        side = self.receives if is_receive else self.sends
        side[member] = array("I", sorted({*side[member], *rows})) if member in side else rows


def _datagrams(members: Sequence[Member], datagrams: list[Datagrams]) -> Iterator[MessageChannel]:
    resolver = _Resolver(members, datagrams)
    flows: dict[tuple[str, str, str, bool], _Flow] = {}
    for each in datagrams:
        for source, target, rows in resolver.flows(each):
            flow = flows.setdefault(
                (each.endpoint.kind, source, target, each.way.is_urgent), _Flow(resolver.path(target))
            )
            flow.add(each.member, rows, is_receive=each.way.is_receive)
    _join_unknown(flows)
    for (kind, source, target, is_urgent), flow in flows.items():
        sends, receives = (
            tuple(Part(member, side[member]) for member in sorted(side)) for side in (flow.sends, flow.receives)
        )
        writers = resolver.holders(kind, source) if source else set()
        yield MessageChannel(
            0,
            kind,
            source,
            target,
            flow.path,
            is_urgent,
            sends,
            receives,
            _numbers(members, writers | {part.member for part in sends}),
            _numbers(members, resolver.holders(kind, target) | {part.member for part in receives}),
            "",
        )


def _join_unknown(flows: dict[tuple[str, str, str, bool], _Flow]) -> None:
    """Join what was received by calls that do not return the sender (`recv`) with all that was sent to that socket."""
    known: dict[tuple[str, bool], list[tuple[str, str, str, bool]]] = {}
    for each in flows:
        if each[0] == "udp" and each[1]:
            known.setdefault(each[2:], []).append(each)
    for key in [each for each in flows if each[0] == "udp" and not each[1] and flows[each].receives]:
        others = known.get(key[2:], [])
        unknown = flows.pop(key)
        joined = flows.setdefault(others[0] if len(others) == 1 else key, _Flow(unknown.path))
        for flow in (unknown, *(flows.pop(other) for other in others if len(others) > 1)):
            for member, rows in flow.sends.items():
                joined.add(member, rows, is_receive=False)
            for member, rows in flow.receives.items():
                joined.add(member, rows, is_receive=True)


class _Resolver:
    """Finds the sockets that addresses of datagrams belong to."""

    def __init__(self, members: Sequence[Member], datagrams: list[Datagrams]) -> None:
        self._members = members
        self._holders: dict[tuple[str, str], set[int]] = {}
        self._by_inode: dict[str, str] = {}
        self._paths: dict[str, str] = {}
        self._bound: dict[int, str] = {}
        for each in datagrams:
            # The same socket can be bound to a wildcard first, and get an address when it is connected.
            address = plain_address(each.endpoint.own)
            if each.endpoint.cookie and not is_wildcard(address):
                self._bound.setdefault(each.endpoint.cookie, address)
        for each in datagrams:
            own = self._own(each)
            self._holders.setdefault((each.endpoint.kind, own), set()).add(each.member)
            if each.endpoint.kind == "unix-datagram":
                self._by_inode[each.endpoint.own] = own
                self._paths[own] = each.endpoint.path
        self._known = {own for kind, own in self._holders if kind == "udp"}

    def holders(self, kind: str, own: str) -> set[int]:
        """Return the indexes of the processes that had a socket."""
        return self._holders.get((kind, own), set())

    def path(self, own: str) -> str:
        """Return the path of a unix socket, if it is not its name already."""
        path = self._paths.get(own, "")
        return path if path != own else ""

    def _own(self, each: Datagrams) -> str:
        endpoint = each.endpoint
        if endpoint.kind != "udp":
            return endpoint.path or endpoint.own
        address = plain_address(endpoint.own)
        return self._bound.get(endpoint.cookie, address) if is_wildcard(address) else address

    def flows(self, each: Datagrams) -> Iterator[tuple[str, str, array[int]]]:
        """Yield source, target and rows of datagrams; a unix socket takes those of all senders in one order."""
        own = self._own(each)
        for address, rows in by_address(self._members[each.member].transfers, each.rows):
            if each.endpoint.kind == "unix-datagram":
                other = address or self._by_inode.get(each.endpoint.peer, each.endpoint.peer)
                yield "", own if each.way.is_receive else other, rows
            else:
                other = known_address(plain_address(address or each.endpoint.peer), self._known)
                yield (other, own, rows) if each.way.is_receive else (own, other, rows)
