"""Collect what a program received over its connections, with TLS taken off."""

from __future__ import annotations

from replaydbg.events.records import Event
from replaydbg.events.values import ExceptionValue
from replaydbg.exported_tests.followed_files import received
from replaydbg.exported_tests.recorded_inputs import Conversation, FoundInputs
from replaydbg.exported_tests.tls_in_memory import TcpConnection, TlsInMemory
from replaydbg.log.reader import Recording
from replaydbg.resources.event_values import IN_PROGRESS, argument, error_number, first, integer, items, number_of

_SENDS = {f"_socket.socket.{name}" for name in ("send", "sendall", "sendmsg")}
_RECEIVES = {f"_socket.socket.{name}" for name in ("recv", "recv_into", "recvmsg", "recvmsg_into", "recvfrom")}
_RESETS = ("ConnectionResetError", "BrokenPipeError", "ConnectionAbortedError")
_LATER = ("BlockingIOError", "InterruptedError", "SSLWantReadError", "SSLWantWriteError")
_MOST_CONVERSATIONS = 10_000


class Sockets:
    """Follows the calls for sockets in the order of the log."""

    def __init__(self, recording: Recording, found: FoundInputs) -> None:
        self._recording, self._found = recording, found
        self._open: dict[int, TcpConnection] = {}
        self._made: list[TcpConnection | Conversation] = []
        self._bound: set[int] = set()
        self._tls: dict[int, TcpConnection] = {}
        """Of each thread the connection with TLS that it began last: events do not name the connection."""
        self._in_memory = TlsInMemory()

    def event(self, event: Event) -> bool:
        """Follow a call; return whether it is one for sockets."""
        name = event.gate
        if name.startswith("_ssl."):
            self._of_tls(event)
        elif name in ("_socket.socket.connect", "_socket.socket.connect_ex"):
            self._connected(event)
        elif name in _SENDS or name in _RECEIVES:
            connection = self._open.get(number_of(argument(event, 0)))
            if connection is not None and not connection.is_tls:
                self._on_socket(event, connection, receives=name in _RECEIVES)
        elif name == "_socket.socket.close":
            self._open.pop(number_of(argument(event, 0)), None)
        elif name in ("_socket.socket.bind", "_socket.socket.listen"):
            self._listens(event)
        elif name == "_socket.getaddrinfo":
            self._looked_up(event)
        elif name in ("_socket.socket.sendto", "_socket.gethostbyname", "_socket.socket._accept"):
            what = {"sendto": "datagrams", "gethostbyname": "host names that gethostbyname looked up"}
            short = name.rpartition(".")[2]
            if short in what:
                self._found.gaps[what[short]] = None
        else:
            return name.startswith("_socket.socket.")
        return True

    def finish(self) -> None:
        """Put the conversations into the inputs, without those with listeners of the program itself."""
        for made in self._made:
            each = made.frozen() if isinstance(made, TcpConnection) else made
            if each.port in self._bound:
                continue
            if len(self._found.conversations) == _MOST_CONVERSATIONS:
                self._found.gaps[f"connections after the first {_MOST_CONVERSATIONS:,}"] = None
                return
            self._found.conversations.append(each)

    def _connected(self, event: Event) -> None:
        address = items(argument(event, 1))
        host, port = (address[0], address[1]) if len(address) >= 2 else (None, None)
        if not isinstance(host, str) or not isinstance(port, int):
            self._found.gaps["connections other than TCP, such as sockets with a path"] = None
            return
        error = error_number(event) if event.raised else integer(event.outcome)
        if event.gate.endswith("connect_ex") and not event.raised and error not in (0, *IN_PROGRESS):
            self._made.append(Conversation(host, port, (), False, "OSError", (error, "")))
            return
        if event.raised and error not in IN_PROGRESS:
            outcome = event.outcome
            kind = outcome.type.qualname if isinstance(outcome, ExceptionValue) else "OSError"
            text = outcome.os_error[1] if isinstance(outcome, ExceptionValue) and outcome.os_error else ""
            self._made.append(Conversation(host, port, (), False, kind, (error, text if isinstance(text, str) else "")))
            return
        number = number_of(argument(event, 0))
        if number in self._open and self._open[number].end == "open" and not self._open[number].has_sent:
            return  # a connection that was begun without waiting, and is asked for again
        connection = TcpConnection(host, port)
        self._open[number] = connection
        self._made.append(connection)

    def _listens(self, event: Event) -> None:
        if event.gate.endswith("bind"):
            port = items(argument(event, 1))[1:2]
            self._bound.update(each for each in port if isinstance(each, int) and each)
        else:
            self._found.gaps["connections that it accepted: the test has no clients"] = None

    def _on_socket(self, event: Event, connection: TcpConnection, *, receives: bool) -> None:
        data = received(self._recording, event) if receives and not event.raised else b""
        if not self._in_memory.is_encrypted(event, connection, data, receives=receives):
            self._moved(event, connection, receives=receives)

    def _moved(self, event: Event, connection: TcpConnection, *, receives: bool) -> None:
        if event.raised:
            kind = event.outcome.type.qualname if isinstance(event.outcome, ExceptionValue) else ""
            if kind in _RESETS:
                connection.end = "reset"
            elif kind not in _LATER and kind != "SSLEOFError":
                gap = f"a call for the connection to {connection.host!a} port {connection.port} that raised {kind!a}"
                self._found.gaps[gap] = None
        elif receives:
            connection.got(received(self._recording, event))
        else:
            connection.sent()

    def _of_tls(self, event: Event) -> None:
        name = event.gate.removeprefix("_ssl.")
        if (found := self._in_memory.event(event)) is not None:
            self._moved(event, found, receives=True)
        elif name == "_SSLContext._wrap_socket":
            is_server = argument(event, 2) is True
            connection = self._open.get(number_of(argument(event, 1)))
            if connection is not None and not is_server:
                connection.is_tls = True
                earlier = self._tls.get(event.lane)
                if earlier is not None and any(each is earlier for each in self._open.values()):
                    self._found.gaps["which of several connections with TLS of one thread an answer belongs to"] = None
                self._tls[event.lane] = connection
        elif name == "_SSLSocket.do_handshake" and event.raised and event.lane in self._tls:
            self._refused(event, self._tls[event.lane])
        elif name in ("_SSLSocket.read", "_SSLSocket.write") and event.lane in self._tls:
            self._moved(event, self._tls[event.lane], receives=name == "_SSLSocket.read")

    def _refused(self, event: Event, connection: TcpConnection) -> None:
        """Follow a handshake that failed: what the program asks in its place gets no answer."""
        kind = event.outcome.type.qualname if isinstance(event.outcome, ExceptionValue) else ""
        if kind in _LATER:
            return
        connection.end = "closed"
        what = "certificate" if kind == "SSLCertVerificationError" else "TLS"
        self._found.gaps[f"that the {what} of {connection.host} was refused: the test checks none"] = None

    def _looked_up(self, event: Event) -> None:
        host = argument(event, 0)
        host = host.decode("latin-1") if isinstance(host, bytes) else host
        if not isinstance(host, str):
            return
        found = self._found.hosts.setdefault(host, [])
        for each in items(event.outcome) if not event.raised else ():
            address = first(items(each)[4:5])
            number = first(address)
            if isinstance(number, str) and number not in found:
                found.append(number)
