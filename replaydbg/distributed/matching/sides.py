"""The sides of channels: a socket or a pipe with all that the processes which had it sent and received through it."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from replaydbg.distributed.matching.addresses import plain_address
from replaydbg.distributed.matching.columns import NEVER, Member, Part
from replaydbg.events.transfers import Endpoint
from replaydbg.log.transfers import PEEKS, RECEIVES, URGENT, TransferColumns

STREAM_SOCKETS = ("tcp", "unix")
PIPES = ("pipe", "fifo")
DATAGRAMS = ("udp", "unix-datagram")


class Way(NamedTuple):
    """One way of the bytes through a side."""

    is_receive: bool
    is_urgent: bool


class ChannelSide:
    """A pipe, or one use of a socket, with the transfers of all processes that had it."""

    def __init__(self, endpoint: Endpoint, own: str, peer: str) -> None:
        self.kind = endpoint.kind
        self.own, self.peer = own, peer
        """Its identities, in a form that both ends have."""
        self.path = endpoint.path
        self.peer_path, self.peer_pid = endpoint.peer_path, endpoint.peer_pid
        self.members: list[int] = []
        """Indexes of the processes that had it."""
        self._rows: defaultdict[Way, dict[int, array[int]]] = defaultdict(dict)

    def add(self, member: int, way: Way, rows: array[int]) -> None:
        """Add transfers of a process."""
        known = self._rows[way].get(member)
        if known is not None:  # a process can have two endpoints of one identity
            rows = array("I", sorted({*known, *rows}))
        self._rows[way][member] = rows

    def parts(self, *, is_receive: bool, is_urgent: bool = False) -> list[Part]:
        """Return what was sent, or received, through it."""
        rows = self._rows.get(Way(is_receive, is_urgent), {})
        return [Part(member, rows[member]) for member in sorted(rows)]

    @property
    def is_urgent(self) -> list[bool]:
        """Whether it has ordinary transfers, urgent ones, or both."""
        return sorted({way.is_urgent for way in self._rows})

    def span(self, members: Sequence[Member]) -> tuple[int, int]:
        """Return the first and the last ticket of its transfers."""
        tickets = [
            ticket
            for rows in self._rows.values()
            for member, each in rows.items()
            for row in each
            if (ticket := members[member].transfers.ticket[row])
        ]
        return (min(tickets), max(tickets)) if tickets else (NEVER, NEVER)


class Datagrams(NamedTuple):
    """Datagrams of one process through one endpoint."""

    member: int
    endpoint: Endpoint
    way: Way
    rows: array[int]


def find_sides(members: Sequence[Member]) -> tuple[list[ChannelSide], list[Datagrams]]:
    """Return the sides of streams, and the datagrams of each endpoint."""
    sides: dict[tuple[str, str, str, int], ChannelSide] = {}
    datagrams: list[Datagrams] = []
    peers = _known_peers(members)
    for index, member in enumerate(members):
        rows = _rows_by_endpoint(member.transfers)
        for endpoint in member.endpoints:
            ways = [(way, rows[endpoint.number, way]) for way in _WAYS if (endpoint.number, way) in rows]
            if endpoint.kind in DATAGRAMS:
                datagrams += [Datagrams(index, endpoint, way, found) for way, found in ways]
                if not ways:
                    datagrams.append(Datagrams(index, endpoint, _WAYS[0], array("I")))
                continue
            if endpoint.kind not in PIPES and endpoint.kind not in STREAM_SOCKETS:
                continue
            side = _side(sides, _with_peer(endpoint, peers))
            if index not in side.members:
                side.members.append(index)
            for way, found in ways:
                side.add(index, way, found)
    return list(sides.values()), datagrams


def _known_peers(members: Sequence[Member]) -> dict[tuple[str, str, int], Endpoint]:
    """Return sockets by what identifies them, each with its peer as the first process that knows it does.

    A process that got a socket after its peer had gone cannot ask for it any more.
    """
    known: dict[tuple[str, str, int], Endpoint] = {}
    for member in members:
        for each in member.endpoints:
            if each.peer and each.cookie and each.kind in STREAM_SOCKETS:
                known.setdefault((each.kind, plain_address(each.own), each.cookie), each)
    return known


def _with_peer(endpoint: Endpoint, peers: dict[tuple[str, str, int], Endpoint]) -> Endpoint:
    if endpoint.peer or endpoint.kind not in STREAM_SOCKETS:
        return endpoint
    known = peers.get((endpoint.kind, plain_address(endpoint.own), endpoint.cookie))
    if known is None:
        return endpoint
    return endpoint._replace(peer=known.peer, peer_path=known.peer_path, peer_pid=known.peer_pid)


def _side(sides: dict[tuple[str, str, str, int], ChannelSide], endpoint: Endpoint) -> ChannelSide:
    if endpoint.kind in PIPES:
        return sides.setdefault((endpoint.kind, endpoint.own, "", 0), ChannelSide(endpoint, endpoint.own, endpoint.own))
    own, peer = plain_address(endpoint.own), plain_address(endpoint.peer)
    return sides.setdefault((endpoint.kind, own, peer, endpoint.cookie), ChannelSide(endpoint, own, peer))


_WAYS = [Way(is_receive, is_urgent) for is_urgent in (False, True) for is_receive in (False, True)]
_PEEKS = 255
_KEYS = bytes(_PEEKS if flags & PEEKS else bool(flags & RECEIVES) + 2 * bool(flags & URGENT) for flags in range(256))


def _rows_by_endpoint(columns: TransferColumns) -> dict[tuple[int, Way], array[int]]:
    """Return the transfers of each endpoint and way, without those that only peeked."""
    found: defaultdict[int, array[int]] = defaultdict(lambda: array("I"))
    row = 0
    for endpoint, key in zip(columns.endpoint, columns.flags.translate(_KEYS), strict=True):
        if key != _PEEKS:
            found[endpoint << 2 | key].append(row)
        row += 1  # noqa: SIM113 - enumerate would make a tuple for each of a million rows
    return {(key >> 2, _WAYS[key & 3]): rows for key, rows in found.items()}


def by_address(columns: TransferColumns, rows: array[int]) -> Iterator[tuple[str, array[int]]]:
    """Yield the rows of each address; empty: the call named none."""
    found: defaultdict[int, array[int]] = defaultdict(lambda: array("I"))
    for row in rows:
        found[columns.address[row]].append(row)
    for address, each in sorted(found.items()):
        yield columns.addresses[address], each
