"""Serve editors at a port of this machine, one after the other."""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from replaydbg.dap.server import DapServer
from replaydbg.dap.wire.editor_stream import EditorStream
from replaydbg.errors import UsageError

LOOPBACK = "127.0.0.1"


def parsed_address(text: str) -> tuple[str, int]:
    """Return the host and port of `HOST:PORT`, `:PORT` or `PORT`; without a host this machine alone can connect.

    Raises UsageError.
    """
    host, colon, port = text.rpartition(":")
    host = host.strip("[]") if colon else ""
    if not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--listen must be HOST:PORT or PORT, with a port up to 65535 (got {text!r}).")
    return host or LOOPBACK, int(port)


def serve_port(host: str, port: int, resolve: Callable[[str], Path], *, is_once: bool = False) -> None:
    """Serve the clients that connect, one after the other; `is_once`: the first one only. Raises UsageError."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        listener = socket.create_server((str(address[0]), port), family=family)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"Cannot listen at {host}:{port}: {error}.") from None
    with listener:
        name, number = listener.getsockname()[:2]
        if not _is_loopback(name):
            text = "anyone who can connect there can run programs with your rights"
            _report(f"{name} can be reached from other machines: {text}.")
        _report(f"listening at {name}:{number}")
        while True:
            connection, peer = listener.accept()
            with connection:
                if _is_of_other_user(peer):
                    _report("a connection of another user was refused")
                    continue
                DapServer(EditorStream(connection.recv, connection.sendall), resolve, is_strict=True).serve()
                _hang_up(connection)
            if is_once:
                return


def _hang_up(connection: socket.socket) -> None:
    """End a connection in both directions: a thread that waits for its next bytes would not notice a mere close."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the client was faster


def _report(text: str) -> None:
    print(f"replaydbg: {text}", file=sys.stderr, flush=True)  # noqa: T201 - a server has no other place for it


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _is_of_other_user(peer: tuple[object, ...]) -> bool:
    """Whether the other end of a connection within this machine belongs to another user, root excepted.

    What launches programs must not do so for every user of the machine. A connection that the kernel does not list is
    not refused: a container has its own list.
    """
    name, port = str(peer[0]), int(str(peer[1]))
    if not _is_loopback(name):
        return False
    address = ipaddress.ip_address(name.partition("%")[0])
    table = "/proc/net/tcp" if address.version == 4 else "/proc/net/tcp6"
    # The kernel prints each word of an address as a number of this machine.
    words = [address.packed[at : at + 4] for at in range(0, len(address.packed), 4)]
    wanted = "".join(f"{int.from_bytes(each, sys.byteorder):08X}" for each in words) + f":{port:04X}"
    try:
        rows = [line.split() for line in Path(table).read_text(encoding="ascii").splitlines()[1:]]
    except OSError:
        return False
    owners = {int(row[7]) for row in rows if len(row) > 7 and row[1] == wanted}
    return bool(owners) and not owners & {0, os.getuid()}
