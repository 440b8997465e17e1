"""Rules for sockets: listening ones listen again; a connection is lost, as if its other side had reset it."""

from __future__ import annotations

import errno
import os
import socket
import stat
import struct
from contextlib import suppress

from replaydbg.resources.kinds import OpenedSocket, SocketState, Unknown
from replaydbg.resume.plan_rows import AddressKept, CannotReopen, Fate, PlanRow
from replaydbg.resume.reopening.kept_addresses import AddressKeeper, keeper_of

_FAMILIES = (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX)
_TYPES = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET)
_NO_LINGER = struct.pack("ii", 1, 0)
"""Closing a socket with this option resets its connection (socket(7), SO_LINGER)."""
_RESET = "ECONNRESET at the next call"
_RESET_TLS = "the next read ends (EOF) or raises, the next write raises"
"""OpenSSL reports the reset of a connection in a way that Python takes for its end, see `suppress_ragged_eofs`."""
_FRESH = (SocketState.NEW, SocketState.BOUND, SocketState.LISTENING)


def plan_socket(opened: OpenedSocket) -> PlanRow:
    """Decide a socket."""
    numbers = opened.handle.numbers
    if isinstance(opened.family, Unknown) or isinstance(opened.type, Unknown):
        reason = next(each.reason for each in (opened.family, opened.type) if isinstance(each, Unknown))
        return PlanRow("sockets", Fate.REFUSED, "a socket", reason, numbers, opened=opened)
    if opened.family not in _FAMILIES or opened.type not in _TYPES:
        shown = f"a socket of family {opened.family}, type {opened.type}"
        return PlanRow("sockets", Fate.REFUSED, shown, "this kind cannot be opened again", numbers, opened=opened)
    if opened.pair and opened.tls is not None:
        reason = "TLS within the program: its keys are not recorded"
        return PlanRow("sockets", Fate.REFUSED, "a socket pair within the program", reason, numbers, opened=opened)
    if opened.pair:
        return PlanRow("sockets", Fate.REOPENED, "a socket pair within the program", "", numbers, opened=opened)
    if opened.pair is not None:
        text = "an end of a socket pair whose other end is in another process"
        return PlanRow("connections", Fate.LOST, text, _RESET, numbers, opened=opened)
    if opened.type == socket.SOCK_DGRAM or opened.state in _FRESH:
        return _plan_address(opened)
    text, reason = f"{'from' if opened.is_accepted else 'to'} {address_text(opened.peer)}", _RESET
    if opened.tls is not None:
        text, reason = f"{text}, with TLS", _RESET_TLS
    return PlanRow("connections", Fate.LOST, text, reason, numbers, opened=opened)


def _plan_address(opened: OpenedSocket) -> PlanRow:
    numbers = opened.handle.numbers
    kind = "listeners" if opened.state is SocketState.LISTENING else "sockets"
    for address in (opened.bound, opened.peer):
        if isinstance(address, Unknown):
            return PlanRow(kind, Fate.REFUSED, "a socket", address.reason, numbers, opened=opened)
    text = address_text(opened.bound) if opened.bound is not None else "unbound"
    if opened.peer is not None:
        text += f", connected to {address_text(opened.peer)}"
    fate, reason = _obstacle(opened)
    return PlanRow(kind, fate, text, reason, numbers, opened=opened)


def address_text(address: object) -> str:
    """Return the text of an address as Python has it."""
    if isinstance(address, Unknown):
        return "an unknown address"
    if isinstance(address, tuple) and len(address) >= 2:
        host, port = address[:2]
        return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
    if isinstance(address, bytes):
        return repr(address)
    return str(address) if address else "an unnamed socket"


def reopen_socket(opened: OpenedSocket) -> int:
    """Make a socket as it was, or one whose connection was reset. Raises CannotReopen."""
    assert isinstance(opened.family, int) and isinstance(opened.type, int)
    is_at_address = opened.pair is None and (opened.type == socket.SOCK_DGRAM or opened.state in _FRESH)
    try:
        made = _at_address(opened, opened.family, opened.type) if is_at_address else reset_socket(opened.family)
    except OSError as error:
        where = address_text(opened.bound if is_at_address else opened.peer)
        raise CannotReopen(f"{where}: {error.strerror or error}") from error
    set_mode(made.fileno(), opened)
    return made.detach()


def set_mode(fd: int, opened: OpenedSocket) -> None:
    """Let the calls of a socket wait, or not, as recorded."""
    flags = opened.handle.flags
    is_set = isinstance(flags, int) and bool(flags & os.O_NONBLOCK)
    os.set_blocking(fd, not (opened.is_non_blocking is True or is_set))


def _bind(made: socket.socket, opened: OpenedSocket) -> None:
    """Bind to the recorded address. Raises AddressKept if only closed connections keep it, OSError."""
    address = opened.bound
    assert not isinstance(address, Unknown)
    try:
        made.bind(address)
    except OSError as error:
        is_tcp = opened.type == socket.SOCK_STREAM and opened.family in (socket.AF_INET, socket.AF_INET6)
        if error.errno != errno.EADDRINUSE or not is_tcp or not isinstance(address, tuple):
            raise
        keeper = keeper_of(str(address[0]), int(address[1]))
        if keeper is AddressKeeper.CLOSED:
            raise AddressKept(address_text(address)) from error
        if keeper is AddressKeeper.PROGRAM:
            raise
        made.bind(address)  # the last of them may have ended between both looks


def _obstacle(opened: OpenedSocket) -> tuple[Fate, str]:
    """Return whether the socket can be bound, and what would happen now instead; empty: it can be bound at once.

    It is bound for a moment, and nobody can connect. The kernel does not show whether closed connections had
    SO_REUSEADDR, and so whether binding is possible.
    """
    assert isinstance(opened.family, int) and isinstance(opened.type, int) and not isinstance(opened.bound, Unknown)
    if opened.bound is None or opened.family == socket.AF_UNIX:
        return Fate.REOPENED, ""
    try:
        with _with_options(opened, opened.family, opened.type) as made:
            _bind(made, opened)
    except AddressKept:
        return Fate.REOPENED, "waits until closed connections no longer keep the address, about a minute"
    except OSError as error:
        return Fate.REFUSED, error.strerror or str(error)
    return Fate.REOPENED, ""


def _with_options(opened: OpenedSocket, family: int, kind: int) -> socket.socket:
    made = socket.socket(family, kind, opened.protocol if isinstance(opened.protocol, int) else 0)
    if opened.bound is not None and family != socket.AF_UNIX:
        # Closed connections keep the address for a minute; this is enough if they had the option, too.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    for each in opened.options:
        with suppress(OSError, TypeError):  # an option of a connection that is no more
            made.setsockopt(each.level, each.option, each.value)
    return made


def _at_address(opened: OpenedSocket, family: int, kind: int) -> socket.socket:
    assert not isinstance(opened.bound, Unknown) and not isinstance(opened.peer, Unknown)
    made = _with_options(opened, family, kind)
    try:
        if opened.bound is not None:
            if family == socket.AF_UNIX:
                _remove_abandoned(opened.bound)
            _bind(made, opened)
        if opened.state is SocketState.LISTENING:
            made.listen(opened.backlog if opened.backlog is not None else socket.SOMAXCONN)
        elif opened.peer is not None:
            made.connect(opened.peer)
    except BaseException:
        made.close()
        raise
    return made


def _remove_abandoned(address: object) -> None:
    """Remove the file of a socket at which nobody listens any more; one that is in use stays, and binding fails."""
    path = os.fsdecode(address) if isinstance(address, str | bytes) else ""
    if not path or path.startswith("\0"):
        return
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return
    except OSError:
        return  # there is none
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asks:
        asks.setblocking(False)
        found = asks.connect_ex(path)
    if found == errno.ECONNREFUSED:
        os.unlink(path)  # noqa: PTH108


def reset_socket(family: int) -> socket.socket:
    """Return a connected stream socket whose other side has reset the connection: ECONNRESET at its next call."""
    if family == socket.AF_UNIX:
        ours, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.send(b"\0")  # closed with something unread, the connection counts as reset
        other.close()
        return ours
    host = "::1" if family == socket.AF_INET6 else "127.0.0.1"
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.bind((host, 0))
        listener.listen(1)
        ours = socket.socket(family, socket.SOCK_STREAM)
        try:
            ours.connect(listener.getsockname())
            other, _ = listener.accept()
        except BaseException:
            ours.close()
            raise
    other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    other.close()
    return ours
