"""The conversation with the core of a replay that is due to go live: one message from it, then the answer to it.

The core carries out the answer, reports that it has done so, and waits for permission to go live. So no program goes
live with something missing, and no process of a group goes live unless all can: the two phases of a distributed commit
(J. Gray, Notes on Data Base Operating Systems, 1978).

Messages of the core are checked field by field: until it is live, the program in its process is not trusted.
"""

from __future__ import annotations

import array
import fcntl
import os
import socket
import struct
from collections.abc import Iterable, Mapping, Sequence

from replaydbg.classes import dataclass
from replaydbg.errors import ForgedMessage
from replaydbg.events.transfers import KINDS, Endpoint
from replaydbg.events.values import Value
from replaydbg.log.coding.codec import decode_value, encode_value
from replaydbg.log.coding.decode import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_IN_MESSAGE = 1 << 30
"""The longest message of the core in bytes: the data of at most some ten calls of 16 MiB each."""
MOST_DESCRIPTORS = 200
"""How many descriptors one message passes; the kernel's limit is 253."""
NOT_AT_A_CALL = -1
"""In place of a thread: the log was used up while none was at a call."""

_HIGH = 200
"""The core's socket gets a number above those that the program uses; the core moves it higher still."""

_READY = b"R"
"""All that the answer says was done."""

_LENGTH = struct.Struct("<Q")
_INT64 = struct.Struct("<q")
_UINT64 = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class CallInFlight:
    """A call that may have been made without being logged; the next or the open one of its thread."""

    thread: int
    """The number of its thread; 0 is the main one."""
    name: str
    """The name of the thread, or empty."""
    call: str
    """The full name of what is called, such as `_io.FileIO.write`."""
    is_open: bool
    """Whether the thread had begun it; otherwise it is the next one of the running thread."""
    fd: int
    """The descriptor of its file, or its first argument; -1: none."""
    args: tuple[Value, ...]
    """The arguments; {"type": NAME} for those that are no data."""
    keywords: Mapping[str, Value]
    """Those with a keyword."""
    data: bytes
    """The beginning of what it was about to write, at most 16 MiB."""
    data_length: int
    """How many bytes it was about to write."""
    file: str
    """The source file of the call; empty: not known."""
    line: int
    """Its line."""
    function: str
    """Its function."""


@dataclass(frozen=True, slots=True)
class LoadDue:
    """A call by which a TLS context that is still there has loaded something: it is made again."""

    event: int
    """The event of the call."""
    is_known: bool
    """Whether the core has all of its arguments."""


@dataclass(frozen=True, slots=True)
class Due:
    """The report of the core when its replay is due to go live."""

    event: int
    """How many events were replayed."""
    thread: int
    """The thread that is at a call, or NOT_AT_A_CALL."""
    calls: tuple[CallInFlight, ...]
    """The calls in flight, at most one for each thread."""
    fds: tuple[int, ...]
    """The descriptors that the program has open, by the replay's books; empty if the core does not know."""
    real: tuple[int, ...]
    """Those that the replay has really opened, and keeps: both ends of pipes, with what is under way in them."""
    loads: tuple[LoadDue, ...] = ()
    """The loads of TLS contexts, in the order of the calls."""
    sent: tuple[tuple[int, bytes], ...] = ()
    """The bytes that the calls asked for have sent: each with its event."""
    maps: frozenset[int] = frozenset()
    """The events that made the maps of files that the program still has."""
    is_end: bool = False
    """Whether its process ends without any further call: it needs nothing of what was open."""


def moved_high(end: socket.socket) -> int:
    """Return a copy of a socket's descriptor with a number above those that the program uses; the socket is closed."""
    high = fcntl.fcntl(end.fileno(), fcntl.F_DUPFD, _HIGH)
    end.close()
    return high


def read_due(connection: socket.socket) -> Due | None:
    """Wait for the core's message; None: its process has ended without one. Raises ForgedMessage."""
    head = _receive(connection, _LENGTH.size)
    if head is None:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > MOST_IN_MESSAGE:
        raise ForgedMessage(f"a message of {length:,} bytes")
    data = _receive(connection, length)
    if data is None:
        raise ForgedMessage("its message is incomplete")
    try:
        value = decode_value(data)
    except Malformed as error:
        raise ForgedMessage(str(error)) from error
    return parse_due(value)


def _receive(connection: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        try:
            piece = connection.recv(min(size - len(data), 1 << 20))
        except ConnectionResetError:  # it was killed with something unread
            return None
        if not piece:
            return None
        data += piece
    return bytes(data)


def parse_due(value: Value) -> Due:
    """Return the message `value` as it was checked. Raises ForgedMessage."""
    fields = _Fields(value)
    if fields.take("ended", int, 0):
        return Due(fields.integer("event", 0), NOT_AT_A_CALL, (), (), (), is_end=True)
    return Due(
        event=fields.integer("event", 0),
        thread=fields.integer("thread", NOT_AT_A_CALL),
        calls=tuple(_call(_Fields(each)) for each in fields.take("calls", list)),
        fds=fields.descriptors("fds"),
        real=fields.descriptors("real"),
        loads=tuple(_load(_Fields(each)) for each in fields.take("loads", list, [])),
        sent=tuple(_sent(each) for each in fields.take("sent", list, [])),
        maps=frozenset(_event(each) for each in fields.take("maps", list, [])),
    )


def _load(fields: _Fields) -> LoadDue:
    return LoadDue(event=fields.integer("event", 1), is_known=fields.take("known", bool))


def _event(value: Value) -> int:
    if type(value) is not int or value < 1:
        raise ForgedMessage("its field 'maps' has an entry that is not the number of an event")
    return value


def _sent(value: Value) -> tuple[int, bytes]:
    if not isinstance(value, list) or len(value) != 2:
        raise ForgedMessage("its field 'sent' has an entry that is not a pair")
    event, data = value
    if type(event) is not int or not isinstance(data, bytes):
        raise ForgedMessage("its field 'sent' has an entry of the wrong types")
    return event, data


def _call(fields: _Fields) -> CallInFlight:
    return CallInFlight(
        thread=fields.integer("thread", 0),
        name=fields.take("name", str),
        call=fields.take("call", str),
        is_open=fields.take("open", bool),
        fd=fields.integer("fd", -1),
        args=tuple(fields.take("args", list)),
        keywords=fields.keywords("keywords"),
        data=fields.take("data", bytes),
        data_length=fields.integer("data_length", 0),
        file=fields.take("file", str, ""),
        line=fields.take("line", int, 0),
        function=fields.take("function", str, ""),
    )


class _Fields:
    """Takes the fields of a message by type."""

    def __init__(self, value: Value) -> None:
        if not isinstance(value, dict):
            raise ForgedMessage("it has no fields")
        self._value = value

    def take(self, name: str, kind: type, default: Any = None) -> Any:
        found = self._value.get(name, default)
        if type(found) is not kind:
            raise ForgedMessage(f"its field {name!r} is {type(found).__name__}")
        return found

    def keywords(self, name: str) -> dict[str, Value]:
        found = self.take(name, dict, {})
        return {key: value for key, value in found.items() if isinstance(key, str)}

    def descriptors(self, name: str) -> tuple[int, ...]:
        found = self.take(name, list, [])
        if not all(type(each) is int and 0 <= each < 1 << 20 for each in found):
            raise ForgedMessage(f"its field {name!r} has what is no descriptor")
        return tuple(found)

    def integer(self, name: str, least: int) -> int:
        found: int = self.take(name, int)
        if not least <= found < 1 << 63:
            raise ForgedMessage(f"its field {name!r} is {found}")
        return found


@dataclass(frozen=True, slots=True)
class Settled:
    """The decision about a call in flight."""

    thread: int
    is_done: bool
    """Whether it was made before: it returns `value`. Otherwise it is made (again)."""
    value: Value = None


class CoreAnswer:
    """Sends the answer of `resume`, message by message, `end`, and `go_live` when it was followed.

    Without the last one the core exits.

    All descriptors stay open here; their owner closes them afterwards.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def pass_descriptors(self, fds: Sequence[int]) -> None:
        """Pass descriptors; they are numbered from 0 in this order."""
        for first in range(0, len(fds), MOST_DESCRIPTORS):
            some = fds[first : first + MOST_DESCRIPTORS]
            self._send(b"F", _INT64.pack(len(some)), some)

    def put(self, fd: int, index: int, *, close_on_exec: bool) -> None:
        """Put the passed descriptor `index` at the number `fd`."""
        self._send_numbers(b"P", (fd, index, int(close_on_exec)))

    def close(self, fd: int) -> None:
        """Leave nothing open at the number `fd`."""
        self._send_numbers(b"C", (fd,))

    def watch(self, epoll: int, fd: int, mask: int) -> None:
        """Register `fd` with the epoll object at the number `epoll`."""
        self._send_numbers(b"E", (epoll, fd, mask))

    def set_timer(self, which: int, value_ns: int, interval_ns: int) -> None:
        """Set a timer of the process as `setitimer` does, in nanoseconds."""
        self._send_numbers(b"T", (which, value_ns, interval_ns))

    def lock_range(self, fd: int, start: int, length: int, name: str, *, is_exclusive: bool) -> None:
        """Let the process lock bytes of the file `name` at the number `fd` again; a length of 0: up to the end."""
        numbers = b"".join(map(_INT64.pack, (fd, start, length, int(is_exclusive))))
        self._send(b"R", numbers + os.fsencode(name))

    def map_file(self, event: int, fd: int) -> None:
        """Let the map that `event` made lie over the file at the number `fd`, which is its own."""
        self._send_numbers(b"M", (event, fd))

    def lose_child(self, pid: int) -> None:
        """Let the program find that SIGKILL has ended this child; a process stands for it until the program is live."""
        self._send_numbers(b"K", (pid,))

    def follow_process(self, index: int, pid: int, *, is_nonblocking: bool) -> None:
        """Replace the passed descriptor `index` by a pidfd of the process that stands for `pid`."""
        self._send_numbers(b"Q", (index, pid, int(is_nonblocking)))

    def stand_for_process(self, recorded: int, pid: int) -> None:
        """Let the program reach the process `pid` by the process id `recorded`."""
        self._send_numbers(b"I", (recorded, pid))

    def stand_for_end(self, fd: int, endpoint: Endpoint) -> None:
        """Let the recording name what is at the number `fd` as the end of a channel that it continues."""
        numbers = (fd, KINDS.index(endpoint.kind) + 1, endpoint.cookie, endpoint.peer_pid)
        texts = (endpoint.own, endpoint.peer, endpoint.path, endpoint.peer_path)
        data = b"".join(each.encode("utf-8", "surrogateescape") + b"\0" for each in texts)
        self._send(b"N", b"".join(_UINT64.pack(each) for each in numbers) + data)

    def enter(self, index: int) -> None:
        """Make the passed descriptor `index`, a directory, the working directory."""
        self._send_numbers(b"D", (index,))

    def set_umask(self, mask: int) -> None:
        """Set the mask for the modes of new files."""
        self._send_numbers(b"U", (mask,))

    def load(self, event: int, files: Sequence[str], *, may_fail: bool) -> None:
        """Let the core make the call of `event` again, by which a TLS context has loaded files.

        `files` are their absolute paths in the order of its arguments; empty: as the program gave it. `may_fail`: the
        program goes live also if it fails.
        """
        paths = b"".join(os.fsencode(each) + b"\0" for each in files)
        self._send(b"L", _INT64.pack(event) + _INT64.pack(int(may_fail)) + paths)

    def settle(self, settled: Settled) -> None:
        """Decide a call in flight."""
        result = encode_value(settled.value) if settled.is_done else b""
        self._send(b"S", _INT64.pack(settled.thread) + _INT64.pack(int(settled.is_done)) + result)

    def end(self) -> None:
        """Let the core report when it has followed all this."""
        self._send(b"A", b"")

    def is_followed(self) -> bool:
        """Wait for the report after `end`; False: the core has ended, and says why in its other report."""
        try:
            return self._connection.recv(1) == _READY
        except ConnectionError:
            return False

    def go_live(self) -> None:
        """Let the program run on."""
        self._send(b"G", b"")

    def _send_numbers(self, kind: bytes, numbers: Iterable[int]) -> None:
        self._send(kind, b"".join(map(_INT64.pack, numbers)))

    def _send(self, kind: bytes, payload: bytes, fds: Sequence[int] = ()) -> None:
        message = kind + _LENGTH.pack(len(payload)) + payload
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        sent = self._connection.sendmsg([message], rights, socket.MSG_NOSIGNAL)
        if sent < len(message):  # of nothing, the system would refuse to send it once the core is gone
            self._connection.sendall(message[sent:], socket.MSG_NOSIGNAL)
