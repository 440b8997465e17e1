"""A model of processes that send and receive, without a kernel: it knows which receive took which bytes.

Each call takes three steps (it begins, its bytes move, it ends), between which other processes go on, as on a machine:
a ticket may be taken long before or after the bytes move.
"""

from __future__ import annotations

from array import array
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from replaydbg.distributed.matching.columns import Member, Moves
from replaydbg.events.transfers import Endpoint, Transfer, digest_of
from replaydbg.log.transfers import PARTLY_KNOWN, PEEKS, RECEIVES, URGENT, TransferColumns


def columns_of(transfers: list[Transfer]) -> TransferColumns:
    """Return transfers as columns."""
    addresses = list(dict.fromkeys(["", *(each.address for each in transfers)]))
    flags = bytes(
        RECEIVES * (each.way == "receive")
        | PEEKS * each.peeks
        | URGENT * each.urgent
        | PARTLY_KNOWN * each.is_partly_known
        for each in transfers
    )
    event, begun, ticket, digest, length = (
        array("Q", [getattr(each, name) for each in transfers])
        for name in ("event", "begun", "ticket", "digest", "length")
    )
    endpoint = array("I", [each.endpoint for each in transfers])
    address = array("I", [addresses.index(each.address) for each in transfers])
    return TransferColumns(event, begun, ticket, digest, length, endpoint, address, flags, addresses)


@dataclass
class Wire:
    """The bytes, or with `is_datagram` the messages, that are on their way to one end."""

    is_datagram: bool = False
    queue: deque[tuple[int, int, bytes]] = field(default_factory=deque)
    """Process, row, and the bytes of each that are still there."""

    def put(self, process: int, row: int, data: bytes) -> None:
        """Add what a send moved."""
        if data or self.is_datagram:
            self.queue.append((process, row, data))

    def take(self, most: int) -> tuple[bytes, list[tuple[int, int, int]]]:
        """Return at most so many bytes, and how many of them are of which send."""
        if self.is_datagram:
            process, row, data = self.queue.popleft()
            return data, [(process, row, len(data))]
        taken = bytearray()
        parts = []
        while self.queue and len(taken) < most:
            process, row, data = self.queue.popleft()
            piece, rest = data[: most - len(taken)], data[most - len(taken) :]
            taken += piece
            parts.append((process, row, len(piece)))
            if rest:
                self.queue.appendleft((process, row, rest))
        return bytes(taken), parts


class World:
    """All processes, the clock of their tickets, and the truth."""

    def __init__(self, processes: int) -> None:
        self.processes = [Process(self, number) for number in range(1, processes + 1)]
        self.ticket = 0
        self.truth: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        """For process and row of each receive: process, row and number of bytes of the sends."""
        self.data: dict[tuple[int, int], bytes] = {}
        """The bytes of each receive."""

    def take_ticket(self) -> int:
        """Return the next ticket."""
        self.ticket += 1
        return self.ticket

    def contents(self, receives: Moves) -> dict[int, bytes]:
        """Return the bytes of receives, by their index."""
        places = map(receives.place, range(len(receives)))
        return {at: self.data[receives.members[index].process, row] for at, (index, row) in enumerate(places)}

    def members(self) -> list[Member]:
        """Return the members of the group as they were recorded."""
        return [
            Member(
                each.number,
                each.endpoints,
                columns_of([_as_recorded(call) for call in each.transfers]),
                events=each.events,
            )
            for each in self.processes
        ]


def _as_recorded(transfer: Transfer) -> Transfer:
    """Return a transfer as it is in a recording: of an open one nothing is known."""
    return transfer if transfer.event else transfer._replace(length=0, digest=0)


class Call:
    """One call of a process, a step at a time."""

    def __init__(self, process: Process, wire: Wire, transfer: Transfer, data: bytes | int) -> None:
        self._process = process
        self._wire = wire
        self._data = data
        self._row = len(process.transfers)
        self._steps = 0
        process.transfers.append(transfer)
        if isinstance(data, bytes):
            self._set(ticket=process.world.take_ticket())

    def step(self) -> bool:
        """Go on; False if it has ended, or waits for bytes."""
        self._steps += 1
        if self._steps == 1:
            return self._move()
        if not isinstance(self._data, bytes):
            self._set(ticket=self._process.world.take_ticket())
        self._process.events += 1
        self._set(event=self._process.events)
        return False

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._steps == 2

    def _move(self) -> bool:
        data = self._data
        if isinstance(data, bytes):
            self._wire.put(self._process.number, self._row, data)
        elif self._wire.queue:
            data, parts = self._wire.take(data)
            self._process.world.truth[self._process.number, self._row] = parts
            self._process.world.data[self._process.number, self._row] = data
        else:
            self._steps = 0
            return False
        self._set(length=len(data), digest=digest_of(data))
        return True

    def _set(self, **changes: Any) -> None:
        transfers = self._process.transfers
        transfers[self._row] = transfers[self._row]._replace(**changes)


class Process:
    """One process with one thread."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.number = number
        self.endpoints: list[Endpoint] = []
        self.transfers: list[Transfer] = []
        self.events = 0
        self.call: Call | None = None

    def open(self, kind: str, own: str, peer: str = "", *, cookie: int = 0, path: str = "") -> int:
        """Return the number of a new endpoint."""
        self.endpoints.append(Endpoint(len(self.endpoints) + 1, kind, own, peer, cookie, path))
        return len(self.endpoints)

    def begin(self, wire: Wire, endpoint: int, data: bytes | int, **more: Any) -> None:
        """Begin to send `data`, or to receive at most so many bytes."""
        way = "send" if isinstance(data, bytes) else "receive"
        transfer = Transfer(0, self.events, 0, endpoint, way, 0, 0, "", False, False)._replace(**more)
        self.call = Call(self, wire, transfer, data)

    def step(self) -> bool:
        """Go on with the call; False if there is none, or it waits."""
        if self.call is None:
            return False
        went = self.call.step()
        if self.call.is_over:
            self.call = None
            return True
        return went

    def finish(self) -> None:
        """Go on with the call until it has ended, or waits."""
        while self.step():
            pass

    def send(self, wire: Wire, endpoint: int, data: bytes, **more: Any) -> None:
        """Send at once."""
        self.begin(wire, endpoint, data, **more)
        self.finish()

    def receive(self, wire: Wire, endpoint: int, most: int = 1 << 20, **more: Any) -> None:
        """Receive at once, or wait."""
        self.begin(wire, endpoint, most, **more)
        self.finish()
