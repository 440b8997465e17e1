"""Follow what calls do to sockets, pipes, epolls and other descriptors that are no files."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from replaydbg.events import linux
from replaydbg.events.records import Event
from replaydbg.resources.descriptions import Description
from replaydbg.resources.event_values import (
    IN_PROGRESS,
    argument,
    byte_count,
    error_number,
    integer,
    items,
    number_of,
    whole,
)
from replaydbg.resources.kinds import SocketOption, SocketState, TlsSession, Unknown
from replaydbg.resources.process_state import ProcessState

_SOCKET_FLAGS = linux.SOCK_NONBLOCK | linux.SOCK_CLOEXEC
_SCM_RIGHTS = (linux.SOL_SOCKET, linux.SCM_RIGHTS)
_DEFAULT_BACKLOG = 128
"""The backlog of `listen()` without an argument (socketmodule.c)."""
_MANY_EPOLLS = Unknown("several epolls are open, and the log does not show which one a call is of")
_PORT_ZERO = Unknown("the kernel chose the port, and the program did not ask for it")
_BROKEN = (linux.EPIPE, linux.ECONNRESET, linux.ECONNABORTED, linux.ETIMEDOUT, linux.ENOTCONN)


def _make_socket(to: ProcessState, event: Event, number: int, parts: tuple[object, ...]) -> Description:
    made = Description("socket", to.origin(event), linux.O_RDWR, can_seek=False)
    _describe(made, parts)
    to.opened(number, made, event)
    return made


def _describe(description: Description, parts: tuple[object, ...]) -> None:
    facts = description.socket
    if len(parts) == 3 and all(isinstance(each, int) for each in parts):
        facts.family, kind, facts.protocol = (integer(each) for each in parts)
        facts.type = kind & ~_SOCKET_FLAGS
        if kind & linux.SOCK_NONBLOCK:
            facts.is_non_blocking = True


def _socket(to: ProcessState, event: Event) -> None:
    number, *parts = items(event.outcome) or (None,)
    given = number_of(argument(event, 3, "fileno"))
    if given >= 0:
        known = to.used(given, event)
        if known is not None:  # an object for a descriptor that exists
            if known.kind != "socket":
                known.kind, known.can_seek = "socket", False
            if isinstance(known.socket.family, Unknown):
                _describe(known, tuple(parts))
            return
    _make_socket(to, event, number_of(number), tuple(parts))


def _pair(to: ProcessState, event: Event) -> None:
    for side, each in zip("01", items(event.outcome), strict=False):
        number, *parts = items(each) or (None,)
        made = _make_socket(to, event, number_of(number), tuple(parts))
        made.side, made.socket.state = side, SocketState.CONNECTED


def _accept(to: ProcessState, event: Event) -> None:
    listening = to.used(number_of(argument(event, 0)), event)
    number, peer = (*items(event.outcome), None, None)[:2]
    made = _make_socket(to, event, number_of(number), ())
    facts = made.socket
    facts.state, facts.is_accepted, facts.peer = SocketState.CONNECTED, True, peer
    if listening is not None:
        of = listening.socket
        facts.family, facts.type, facts.protocol, facts.bound = of.family, of.type, of.protocol, of.bound


def _facts(to: ProcessState, event: Event) -> Description | None:
    found = to.used(number_of(argument(event, 0)), event)
    if found is not None and found.kind != "socket":
        found.kind, found.can_seek = "socket", False
    return found


def _bind(to: ProcessState, event: Event) -> None:
    if (found := _facts(to, event)) is not None:
        address = argument(event, 1)
        is_zero = isinstance(address, tuple) and len(address) > 1 and address[1] == 0
        found.socket.bound = _PORT_ZERO if is_zero else address
        found.socket.state = SocketState.BOUND


def _listen(to: ProcessState, event: Event) -> None:
    if (found := _facts(to, event)) is not None:
        found.socket.backlog = integer(argument(event, 1, "backlog", _DEFAULT_BACKLOG), _DEFAULT_BACKLOG)
        found.socket.state = SocketState.LISTENING


def _connect(to: ProcessState, event: Event) -> None:
    """`connect` returns, or `connect_ex` returns an errno."""
    _connected(to, event, integer(event.outcome))


def _connect_failed(to: ProcessState, event: Event) -> None:
    if error_number(event) in IN_PROGRESS:
        _connected(to, event, error_number(event))


def _connected(to: ProcessState, event: Event, error: int) -> None:
    if (found := _facts(to, event)) is not None and (not error or error in IN_PROGRESS or error == linux.EISCONN):
        found.socket.peer = argument(event, 1)
        is_done = not error or error == linux.EISCONN
        found.socket.state = SocketState.CONNECTED if is_done else SocketState.CONNECTING


def _own_name(to: ProcessState, event: Event) -> None:
    if (found := _facts(to, event)) is not None:
        found.socket.bound = event.outcome
    _was_shown(to, event)


def _was_shown(to: ProcessState, event: Event) -> None:
    """A socket object that is garbage-collected closes its descriptor without an event (`sock_finalize` in CPython's
    socketmodule.c), after a warning that contains its `repr()`, which calls this. So does every other `repr()`.
    """
    if event.site.function == SOCKET_REPR:
        shown = f"its repr() was made at event {event.number:,}, as when a socket is garbage-collected, which closes it"
        to.numbers.suspect(number_of(argument(event, 0)), shown)


SOCKET_REPR = "socket.__repr__"
"""The function of the standard library that makes the `repr()` of a socket."""


def _peer_name(to: ProcessState, event: Event) -> None:
    if (found := _facts(to, event)) is not None:
        found.socket.peer = event.outcome
        if found.socket.state in (SocketState.NEW, SocketState.BOUND, SocketState.CONNECTING):
            found.socket.state = SocketState.CONNECTED
    _was_shown(to, event)


def _get_option(to: ProcessState, event: Event) -> None:
    found = _facts(to, event)
    if found is None or (argument(event, 1), argument(event, 2)) != (linux.SOL_SOCKET, linux.SO_ERROR):
        return
    if found.socket.state is SocketState.CONNECTING:
        found.socket.state = SocketState.CONNECTED if event.outcome == 0 else SocketState.BROKEN


def _set_option(to: ProcessState, event: Event) -> None:
    if (found := _facts(to, event)) is not None:
        level, option = whole(argument(event, 1)), whole(argument(event, 2))
        if level is not None and option is not None:
            found.socket.options[level, option] = SocketOption(level, option, argument(event, 3))


def _shut(to: ProcessState, event: Event) -> None:
    if (found := _facts(to, event)) is not None:
        how = {0: ("read",), 1: ("write",), 2: ("read", "write")}.get(integer(argument(event, 1), -1), ())
        found.socket.shut = tuple(sorted({*found.socket.shut, *how}))


def _receive(to: ProcessState, event: Event) -> None:
    found = _facts(to, event)
    if found is None:
        return
    if byte_count(event.outcome) == 0 and found.socket.type == linux.SOCK_STREAM and not _wants_none(event):
        found.socket.state = SocketState.PEER_CLOSED
    for number in passed_descriptors(event):
        other = Description("passed descriptor", to.origin(event), _NOT_PASSED)
        to.opened(number, other, event)


_NOT_PASSED = Unknown("another process opened it, or this one, and passed it in a message")


def _wants_none(event: Event) -> bool:
    return argument(event, 1) == 0


def _send(to: ProcessState, event: Event) -> None:
    _facts(to, event)


def _name_failed(to: ProcessState, event: Event) -> None:
    _was_shown(to, event)


def _failed(to: ProcessState, event: Event) -> None:
    found = to.numbers.get(number_of(argument(event, 0)))
    if found is not None and error_number(event) in _BROKEN and found.socket.state is SocketState.CONNECTED:
        found.socket.state = SocketState.BROKEN


def passed_descriptors(event: Event) -> Iterator[int]:
    """Yield the descriptors that came with a message (`recvmsg`)."""
    for message in items((*items(event.outcome), None, None)[1]):
        parts = items(message)
        if len(parts) == 3 and (parts[0], parts[1]) == _SCM_RIGHTS and isinstance(parts[2], bytes):
            usable = parts[2][: len(parts[2]) // 4 * 4]
            yield from (each for each in struct.unpack(f"={len(usable) // 4}i", usable) if each >= 0)


def _wrap_tls(to: ProcessState, event: Event) -> None:
    if event.gate.endswith("_wrap_bio"):
        side, name = argument(event, 3), argument(event, 4)
        to.tls.append(_session(to, event, side, name, None))
        return
    number = number_of(argument(event, 1))
    if (found := to.used(number, event)) is not None:
        found.socket.tls = _session(to, event, argument(event, 2), argument(event, 3), number)


def _session(to: ProcessState, event: Event, side: object, name: object, number: int | None) -> TlsSession:
    is_server = bool(side) if isinstance(side, int) else Unknown("the log does not show it")
    return TlsSession(to.origin(event), is_server, name if isinstance(name, str) else None, number)


def _pipe(to: ProcessState, event: Event) -> None:
    flags = integer(argument(event, 0, "flags"))
    for side, number in zip(("read", "write"), items(event.outcome), strict=False):
        access = linux.O_RDONLY if side == "read" else linux.O_WRONLY
        made = Description("pipe", to.origin(event), access | flags & linux.O_NONBLOCK, can_seek=False, side=side)
        cloexec = event.gate == "posix.pipe" or bool(flags & linux.O_CLOEXEC)
        to.opened(number_of(number), made, event, close_on_exec=cloexec)


def _open_terminals(to: ProcessState, event: Event) -> None:
    for side, number in zip(("master", "slave"), items(event.outcome), strict=False):
        made = Description("terminal", to.origin(event), linux.O_RDWR, can_seek=False, side=side)
        to.opened(number_of(number), made, event)


def _open_master(to: ProcessState, event: Event) -> None:
    made = Description("terminal", to.origin(event), linux.O_RDWR, can_seek=False, side="master")
    to.opened(number_of(event.outcome), made, event)


def _make(to: ProcessState, event: Event, kind: str, value: int | Unknown, flags: int = linux.O_RDWR) -> Description:
    made = Description(kind, to.origin(event), flags, can_seek=False, value=value)
    to.opened(number_of(event.outcome), made, event)
    return made


def _epoll(to: ProcessState, event: Event) -> None:
    _make(to, event, "epoll", 0)


def _event_fd(to: ProcessState, event: Event) -> None:
    flags = integer(argument(event, 1, "flags", linux.EFD_CLOEXEC))
    made = _make(to, event, "eventfd", integer(argument(event, 0, "initval")), linux.O_RDWR | flags & linux.O_NONBLOCK)
    made.side = "semaphore" if flags & linux.EFD_SEMAPHORE else ""


def _event_fd_read(to: ProcessState, event: Event) -> None:
    if (found := to.used(number_of(argument(event, 0, "fd")), event)) is not None:
        to.eventfd_read(found)


def _event_fd_write(to: ProcessState, event: Event) -> None:
    found = to.used(number_of(argument(event, 0, "fd")), event)
    if found is not None and isinstance(found.value, int):
        found.value += integer(argument(event, 1, "value"))


def _pid_fd(to: ProcessState, event: Event) -> None:
    _make(to, event, "pidfd", integer(argument(event, 0, "pid")))


def _timer_fd(to: ProcessState, event: Event) -> None:
    flags = integer(argument(event, 1, "flags"))
    _make(to, event, "timerfd", integer(argument(event, 0, "clockid")), linux.O_RDWR | flags & linux.O_NONBLOCK)


def _set_timer_fd(to: ProcessState, event: Event) -> None:
    if (found := to.used(number_of(argument(event, 0)), event)) is not None:
        found.settings, found.set_by = (event.arguments or ())[1:], to.origin(event)


def _the_epoll(to: ProcessState) -> Description | None:
    """Return the epoll that a call is of; None: there are several, whose registrations are not known from now on."""
    found = list(to.descriptions("epoll"))
    if len(found) == 1:
        return found[0]
    for each in found:
        each.watched = _MANY_EPOLLS
    return None


def _register(to: ProcessState, event: Event) -> None:
    number = number_of(argument(event, 0))
    to.used(number, event)
    epoll = _the_epoll(to)
    if epoll is not None and isinstance(epoll.watched, dict):
        everything = 0x1 | 0x2 | 0x4  # EPOLLIN, EPOLLPRI, EPOLLOUT
        epoll.watched[number] = integer(argument(event, 1, "eventmask", everything))


def _unregister(to: ProcessState, event: Event) -> None:
    epoll = _the_epoll(to)
    if epoll is not None and isinstance(epoll.watched, dict):
        epoll.watched.pop(number_of(argument(event, 0)), None)


def _close_epoll(to: ProcessState, event: Event) -> None:
    found = list(to.descriptions("epoll"))
    for each in found:
        for number in list(each.numbers):
            facts = to.numbers.facts(number)
            if len(found) == 1:
                to.numbers.drop(number)
            elif facts is not None:
                facts.doubt = (
                    f"one of {len(found)} epolls was closed at event {event.number:,}; which one is not recorded"
                )


_RECEIVES = ("recv", "recvfrom", "recvmsg", "recv_into", "recvfrom_into", "recvmsg_into")
_SENDS = ("send", "sendall", "sendto", "sendmsg")

SOCKET_ACTIONS: dict[str, Callable[[ProcessState, Event], None]] = {
    "_socket.socket.__init__": _socket,
    "_socket.socketpair": _pair,
    "_socket.socket._accept": _accept,
    "_socket.socket.bind": _bind,
    "_socket.socket.listen": _listen,
    **dict.fromkeys(("_socket.socket.connect", "_socket.socket.connect_ex"), _connect),
    "_socket.socket.getsockname": _own_name,
    "_socket.socket.getpeername": _peer_name,
    "_socket.socket.getsockopt": _get_option,
    "_socket.socket.setsockopt": _set_option,
    "_socket.socket.shutdown": _shut,
    **{f"_socket.socket.{name}": _receive for name in _RECEIVES},
    **{f"_socket.socket.{name}": _send for name in _SENDS},
    **dict.fromkeys(("_ssl._SSLContext._wrap_socket", "_ssl._SSLContext._wrap_bio"), _wrap_tls),
    **dict.fromkeys(("posix.pipe", "posix.pipe2"), _pipe),
    "posix.openpty": _open_terminals,
    "posix.posix_openpt": _open_master,
    "select.epoll.__new__": _epoll,
    **dict.fromkeys(("select.epoll.register", "select.epoll.modify"), _register),
    "select.epoll.unregister": _unregister,
    "select.epoll.close": _close_epoll,
    "posix.eventfd": _event_fd,
    "posix.eventfd_read": _event_fd_read,
    "posix.eventfd_write": _event_fd_write,
    "posix.pidfd_open": _pid_fd,
    "posix.timerfd_create": _timer_fd,
    **dict.fromkeys(("posix.timerfd_settime", "posix.timerfd_settime_ns"), _set_timer_fd),
}
"""The effects of calls that returned, by gate."""

FAILED_SOCKET_ACTIONS: dict[str, Callable[[ProcessState, Event], None]] = {
    **dict.fromkeys(("_socket.socket.connect", "_socket.socket.connect_ex"), _connect_failed),
    **dict.fromkeys(("_socket.socket.getsockname", "_socket.socket.getpeername"), _name_failed),
    **{f"_socket.socket.{name}": _failed for name in (*_RECEIVES, *_SENDS)},
}
"""The effects of calls that raised."""
