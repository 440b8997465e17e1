"""Connections, and which of them belongs to what OpenSSL decrypts in memory, as asyncio lets it do."""

from __future__ import annotations

from dataclasses import dataclass, field

from replaydbg.events.records import Event
from replaydbg.exported_tests.recorded_inputs import Conversation
from replaydbg.resources.event_values import byte_count, integer

_HANDSHAKE = b"\x16\x03"
"""With what a server that speaks TLS begins."""


@dataclass(slots=True)
class TcpConnection:
    """A connection of the program, while it is open."""

    host: str
    port: int
    answers: list[bytearray] = field(default_factory=list)
    has_sent: bool = False
    is_answered: bool = False
    """Whether the last call received: what comes next belongs to the same answer."""
    speaks_first: bool = False
    end: str = "open"
    is_tls: bool = False
    """Whether OpenSSL reads from the socket itself."""
    is_tls_in_memory: bool = False
    """Whether the program moves encrypted bytes between the socket and OpenSSL."""

    def sent(self) -> None:
        """Follow that the program sent something."""
        self.has_sent, self.is_answered = True, False

    def got(self, data: bytes) -> None:
        """Follow that it received something; nothing: the other side has closed."""
        if not data:
            self.end = "closed"
            return
        if not self.is_answered:
            self.speaks_first = self.speaks_first or not (self.answers or self.has_sent)
            self.answers.append(bytearray())
        self.answers[-1] += data
        self.is_answered = True

    def frozen(self) -> Conversation:
        """Return it as a value."""
        answers = tuple(bytes(each) for each in self.answers)
        return Conversation(self.host, self.port, answers, self.speaks_first, self.end)


class TlsInMemory:
    """Follows encrypted bytes: from a socket into a buffer, and from there to the program.

    Events of OpenSSL do not name the connection. But a thread takes bytes from a socket before it puts as many into a
    buffer, and reads from OpenSSL right after that.
    """

    def __init__(self) -> None:
        self._is_used = False
        self._written: set[int] = set()
        """Threads that have given something to OpenSSL which is not sent yet."""
        self._received: dict[int, list[tuple[TcpConnection, int]]] = {}
        self._reads: dict[int, TcpConnection] = {}

    def is_encrypted(self, event: Event, connection: TcpConnection, data: bytes, *, receives: bool) -> bool:
        """Follow a call for a socket, which received `data`; return whether it moved encrypted bytes."""
        lane = event.lane
        if self._is_used and receives and not connection.answers and data.startswith(_HANDSHAKE):
            connection.is_tls_in_memory = True
        if not connection.is_tls_in_memory:
            return False
        if event.raised:
            return True
        count = byte_count(event.outcome)
        if not receives and lane in self._written:
            self._written.discard(lane)
            connection.sent()
        elif receives and count:
            self._received.setdefault(lane, []).append((connection, count))
        elif receives:
            connection.got(b"")
        return True

    def event(self, event: Event) -> TcpConnection | None:
        """Follow a call of OpenSSL; return the connection from which it returned decrypted bytes."""
        name, lane = event.gate.removeprefix("_ssl."), event.lane
        if name == "_SSLContext._wrap_bio":
            self._is_used = True
        elif name == "MemoryBIO.write" and not event.raised:
            waiting = self._received.get(lane, [])
            count = integer(event.outcome)
            found = next((number for number, each in enumerate(waiting) if each[1] == count), None)
            if found is not None:
                self._reads[lane] = waiting.pop(found)[0]
        elif name == "_SSLSocket.write" and lane in self._reads and not event.raised:
            self._written.add(lane)
        elif name == "_SSLSocket.read" and lane in self._reads and not event.raised:
            return self._reads[lane]
        return None
