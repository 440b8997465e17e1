"""Find out who keeps a TCP address: another program, or connections that are closed and belong to nobody."""

from __future__ import annotations

import enum
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LONGEST = 125.0
"""Seconds for which the kernel keeps a closed connection at most, unless data of it was not acknowledged: 60 until the
other side has closed it, too (tcp(7), tcp_fin_timeout), and 60 from then on (TCP_TIMEWAIT_LEN). A little is added."""

_TABLES = (("/proc/net/tcp", socket.AF_INET), ("/proc/net/tcp6", socket.AF_INET6))
_WILDCARDS = ("0.0.0.0", "::")
_MAPPED = "::ffff:"
"""Begins the text of an IPv4 address that a socket of IPv6 has."""
_ADDRESS, _INODE = 1, 9
"""Columns of the tables (proc(5))."""


class _Kept(NamedTuple):
    """A socket of the machine."""

    host: str
    port: int
    is_owned: bool
    """Whether a process has it open: a closed connection has no inode any more."""


class AddressKeeper(enum.Enum):
    """Who keeps an address."""

    CLOSED = enum.auto()
    """Nothing but closed connections."""
    PROGRAM = enum.auto()
    """A socket that a process has open."""
    NONE_SEEN = enum.auto()
    """Nobody any more, or a socket that only has the address: the kernel lists those that listen or are connected."""


def keeper_of(host: str, port: int) -> AddressKeeper:
    """Return who keeps an address at the moment."""
    found = [each for each in _sockets() if each.port == port and _overlap(each.host, host)]
    if not found:
        return AddressKeeper.NONE_SEEN
    return AddressKeeper.PROGRAM if any(each.is_owned for each in found) else AddressKeeper.CLOSED


def _overlap(one: str, other: str) -> bool:
    return one == other or one in _WILDCARDS or other in _WILDCARDS


def _sockets() -> Iterator[_Kept]:
    for table, family in _TABLES:
        path = Path(table)
        if not path.exists():  # a machine without IPv6
            continue
        for line in path.read_text().splitlines()[1:]:
            columns = line.split()
            address, _, port = columns[_ADDRESS].partition(":")
            yield _Kept(_host(address, family), int(port, 16), columns[_INODE] != "0")


def _host(address: str, family: int) -> str:
    """Return the text of an address that the kernel prints as numbers of 32 bits, each in the machine's byte order."""
    words = (int(address[start : start + 8], 16) for start in range(0, len(address), 8))
    packed = b"".join(word.to_bytes(4, sys.byteorder) for word in words)
    return socket.inet_ntop(family, packed).removeprefix(_MAPPED)
