"""The ends of channels, and the open files, that processes of a group have in a cut, with the bytes in flight."""

from __future__ import annotations

import os
import socket
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from operator import itemgetter
from pathlib import Path

from replaydbg.distributed.descriptors import FILE, PAIR, PIPE, SOCKET, ChannelEnd
from replaydbg.recovery.bytes_in_flight import FlyingPiece, flying_pieces
from replaydbg.recovery.connections import Connections, find_connections
from replaydbg.recovery.recovery_line import RecoveryLine
from replaydbg.recovery.sent_before import sent_before
from replaydbg.resources.kinds import (
    OpenedFile,
    OpenedPipe,
    OpenedSocket,
    OpenResource,
    Resources,
    SocketState,
    Unknown,
)
from replaydbg.store.directory import member_path

FIFO = "fifo"
"""The kind of channels that are fifos, and of their ends in the recordings."""


_UNCONNECTED = (SocketState.NEW, SocketState.BOUND, SocketState.LISTENING)
"""States of sockets that have no other end: what their logs know of one is later than the cut."""


@dataclass(frozen=True, slots=True)
class SharedChannel:
    """A pipe, a fifo, a pair of sockets or a connection between processes of the group, or an open file of several."""

    ends: tuple[ChannelEnd, ...]
    """Both ends, of a pipe the one that reads first; all of a fifo; one of an open file or a listening socket."""
    kind: str
    """`pipe`, `fifo`, `pair`, `connection`, `waiting` (not accepted yet), or `file` for one end of any kind."""
    holders: dict[ChannelEnd, tuple[int, ...]]
    """The processes that have each end in the cut; none: it was closed."""
    opened: dict[ChannelEnd, OpenResource]
    """Each end as one of these processes has it."""
    flying: dict[ChannelEnd, tuple[FlyingPiece, ...]]
    """By the end that sent them, in order."""
    listener: ChannelEnd | None = None
    """Of a connection that was not accepted yet: the listening socket."""

    def takers(self, sender: ChannelEnd) -> list[ChannelEnd]:
        """Return the ends that receive what was sent through an end; of a connection not yet accepted its listener."""
        if self.kind == FIFO:
            return [end for end in self.ends if _reads(self.opened.get(end))]
        return [self.listener] if self.listener is not None else [end for end in self.ends if end != sender]

    def count(self) -> int:
        """Return the number of bytes in flight."""
        return sum(each.length for pieces in self.flying.values() for each in pieces)


class SharedEnds:
    """Ends and open files that processes of a group have in common in a recovery line: a pass over each log."""

    def __init__(self, line: RecoveryLine, resources: dict[int, Resources]) -> None:
        """`resources` are those of each process that goes on, at its position. Raises CannotResume."""
        self._line, self._ends = line, line.ends
        self.tables = {each.number: line.ends.descriptors(each.number, each.position) for each in line.running}
        """For each process that goes on what its descriptors refer to."""
        self._holders: defaultdict[ChannelEnd, set[int]] = defaultdict(set)
        self._opened: dict[ChannelEnd, OpenResource] = {}
        for process, table in self.tables.items():
            by_number = resources[process].by_number()
            for number, end in table.items():
                self._holders[end].add(process)
                if number in by_number:
                    self._keep(end, by_number[number])
        self._flying = flying_pieces(line, self._is_awaited, self._receives)
        self._add_sent_by_ended()
        self.channels = list(self._found())
        """All of them, listening sockets before connections that wait for them, and these as they were begun."""
        begun = {end: at for at, end in enumerate(self._connections.waiting)}
        self.channels.sort(key=lambda each: (each.kind == "waiting", begun.get(each.ends[0], 0), each.ends))

    def _keep(self, end: ChannelEnd, opened: OpenResource) -> None:
        """Keep what knows most: a process need not know the offset, or the address, of what another one has opened."""
        known = self._opened.get(end)
        if known is None or (_is_known(opened) and not _is_known(known)):
            self._opened[end] = opened

    # ---- bytes in flight ----

    def _is_awaited(self, end: ChannelEnd) -> bool:
        """Whether a process that goes on can still receive what was sent through an end."""
        if (identity := self._ends.endpoint(end)) is not None and identity.kind == FIFO:
            return any(_reads(self._opened[each]) for each in self._fifos.get(identity.path, ()))
        others = self._ends.others(end)
        return others is None or any(self._holders.get(each) for each in others) or self._waits(others) is not None

    def _receives(self, name: str) -> bool:
        """Whether a process that goes on has a datagram socket of this name: a path, or an inode."""
        for end in self._holders:
            identity, opened = self._ends.endpoint(end), self._opened.get(end)
            if identity is not None and name in (identity.own, identity.path):
                return True
            if isinstance(opened, OpenedSocket) and opened.bound == name:
                return True
        return False

    def _add_sent_by_ended(self) -> None:
        """Get the bytes that a process sent which has ended: it is replayed, and does not go live.

        Raises CannotResume, or Divergence.
        """
        wanted: defaultdict[int, set[int]] = defaultdict(set)
        for each in chain.from_iterable(self._flying.values()):
            if each.data is None and not self._line.members[each.process].runs:
                wanted[each.process].add(each.event)
        sent = {}
        for process, events in wanted.items():
            path = member_path(self._line.directory, process)
            for event, data in sent_before(path, self._line.name, sorted(events)).items():
                sent[process, event] = data
        for pieces in self._flying.values():
            pieces[:] = [each.filled(sent.get((each.process, each.event), b"")) for each in pieces]

    def shut(self, end: ChannelEnd) -> tuple[bool, bool]:
        """Return whether receiving from, and sending to, a socket was shut down in the cut."""
        return self._ends.shut(end, self._line.positions)

    def wanted(self) -> dict[int, list[int]]:
        """Return for each process the events whose data only its replay has, ascending."""
        found: defaultdict[int, set[int]] = defaultdict(set)
        for channel in self.channels:
            for pieces in channel.flying.values():
                for each in pieces:
                    if each.data is None:
                        found[each.process].add(each.event)
        return {process: sorted(events) for process, events in found.items()}

    # ---- what is shared ----

    def _found(self) -> Iterator[SharedChannel]:
        seen: set[ChannelEnd] = set()
        for end in sorted(self._holders):
            if end in seen:
                continue
            channel = self._channel(end)
            if channel is not None:
                seen.update(channel.ends)
                yield channel
        for end, listener in self._connections.waiting.items():
            if end not in self._holders:  # it was closed
                yield self._made((end,), "waiting", listener)

    def _listening_to(self, address: object) -> ChannelEnd | None:
        return self._listening_at(_address(address))

    def _channel(self, end: ChannelEnd) -> SharedChannel | None:
        """Return the channel of an end; None: it is the process's own, or leads out of the group."""
        if end.kind in (PIPE, PAIR):
            ends = tuple(sorted((end, end._replace(side=1 - end.side))))
            is_shared = any(self._ends.is_shared(each, min(self._holders[end])) for each in ends)
            return self._made(ends, end.kind) if is_shared else None
        opened = self._opened.get(end)
        if isinstance(opened, OpenedPipe):
            return self._fifo(opened)
        if end.kind == SOCKET and isinstance(opened, OpenedSocket) and opened.state not in _UNCONNECTED:
            connection = self._connection(end)
            if connection is not None:
                return connection
        is_known = end.kind in (FILE, SOCKET) and opened is not None
        is_listener = isinstance(opened, OpenedSocket) and opened.state is SocketState.LISTENING
        return self._made((end,), "file") if is_known and (is_listener or len(self._holders[end]) > 1) else None

    def _fifo(self, opened: OpenedPipe) -> SharedChannel | None:
        """Return the channel of an open fifo; None: only one side of it is open, and nothing is in flight."""
        path = os.path.realpath(opened.path or "")
        ends = self._fifos.get(path, ())
        made = self._made(tuple(ends), FIFO)
        flying = {}
        for sender, pieces in self._flying.items():
            identity = self._ends.endpoint(sender)
            if identity is not None and (identity.kind, identity.path) == (FIFO, path):
                flying[sender] = tuple(pieces)
        has_both = any(_reads(self._opened[end]) for end in ends) and any(_writes(self._opened[end]) for end in ends)
        return replace(made, flying=flying) if has_both or flying else None

    @cached_property
    def _fifos(self) -> dict[str, list[ChannelEnd]]:
        """The open ends of each fifo that is still there, by its path without symbolic links."""
        found: defaultdict[str, list[ChannelEnd]] = defaultdict(list)
        for end, opened in sorted(self._opened.items(), key=itemgetter(0)):
            if isinstance(opened, OpenedPipe) and opened.path is not None and Path(opened.path).is_fifo():
                found[os.path.realpath(opened.path)].append(end)
        return dict(found)

    def _connection(self, end: ChannelEnd) -> SharedChannel | None:
        partner, others = self._connections.partners.get(end), self._ends.others(end)
        accepted = [partner] if partner else sorted(each for each in others or () if each.kind == SOCKET)
        if len(accepted) == 1 and (self._holders.get(accepted[0]) or self._was_held(accepted[0])):
            return self._made((end, accepted[0]), "connection")
        listener = self._connections.waiting.get(end) or self._waits(others)
        return self._made((end,), "waiting", listener) if listener is not None else None

    @cached_property
    def _connections(self) -> Connections:
        sockets = {
            end: opened
            for end, opened in self._opened.items()
            if end.kind == SOCKET and isinstance(opened, OpenedSocket) and opened.type == socket.SOCK_STREAM
        }
        return find_connections(self._line, sockets, self._listening_to)

    def _was_held(self, end: ChannelEnd) -> bool:
        """Whether a process had an end before the cut."""
        owner = self._line.members.get(end.process)
        return owner is not None and end.event <= owner.position

    def _waits(self, others: set[ChannelEnd] | None) -> ChannelEnd | None:
        """Return the listening socket of a connection that is accepted after the cut; None: it is not."""
        for each in others or ():
            if each.kind == SOCKET and not self._was_held(each) and not self._holders.get(each):
                identity = self._ends.endpoint(each)
                found = self._listening_at(identity.own) if identity is not None else None
                if found is not None:
                    return found
        return None

    def is_inside(self, opened: OpenedSocket) -> bool:
        """Whether a socket has connected to one of the group's listening sockets."""
        return (
            opened.peer is not None and not opened.is_accepted and self._listening_at(_address(opened.peer)) is not None
        )

    def _listening_at(self, address: str) -> ChannelEnd | None:
        for end, opened in self._opened.items() if address else ():
            if isinstance(opened, OpenedSocket) and opened.state is SocketState.LISTENING:
                bound = opened.bound
                if isinstance(bound, tuple) and len(bound) >= 2 and address.endswith(f":{bound[1]}"):
                    return end
                if isinstance(bound, str) and bound == address:
                    return end
        return None

    def _made(self, ends: tuple[ChannelEnd, ...], kind: str, listener: ChannelEnd | None = None) -> SharedChannel:
        return SharedChannel(
            ends,
            kind,
            {each: tuple(sorted(self._holders.get(each, ()))) for each in ends},
            {each: self._opened[each] for each in ends if each in self._opened},
            {each: tuple(self._flying[each]) for each in ends if self._flying.get(each)},
            listener,
        )


def _reads(opened: OpenResource | None) -> bool:
    return isinstance(opened, OpenedPipe) and opened.side != "write"


def _writes(opened: OpenResource | None) -> bool:
    return isinstance(opened, OpenedPipe) and opened.side != "read"


def _is_known(opened: OpenResource) -> bool:
    """Whether a process knows enough of what it has open to open it again."""
    if isinstance(opened, OpenedFile):
        return isinstance(opened.offset, int)
    if isinstance(opened, OpenedSocket):
        return not any(isinstance(each, Unknown) for each in (opened.family, opened.type, opened.bound, opened.peer))
    return True


def _address(address: object) -> str:
    """Return an address as it ends in the name of an end: only its port counts."""
    if isinstance(address, tuple) and len(address) >= 2:
        return f"{address[0]}:{address[1]}"
    return address if isinstance(address, str) else ""
