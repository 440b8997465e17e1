"""Which faults a call may have: a column of the gate table, which `replaydbg futures --faults` tries.

Only what the call's manual page allows is listed, so each future goes a way that a real run can take. EINTR is missing:
Python itself calls again (PEP 475), so no program sees it.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator

from replaydbg.classes import NamedTuple
from replaydbg.gates.row import Row

SHORT, TIMEOUT, ORDER, STEP = "SHORT", "TIMEOUT", "ORDER", "STEP"
"""Fewer bytes than asked for; the deadline of a socket has passed; ready descriptors in another order; the wall clock
is set by an hour.
"""
STEP_SECONDS = 3600


class FaultColumn(NamedTuple):
    """Calls that have one name in commands, and their faults."""

    name: str
    gates: tuple[str, ...]
    """With their modules."""
    faults: tuple[str, ...]
    """Names of errors (`ENOSPC`), and those above."""


def _column(name: str, gates: str, faults: str) -> FaultColumn:
    return FaultColumn(name, tuple(gates.split()), tuple(faults.split()))


_READS = "posix.read posix.readinto _io.FileIO.read _io.FileIO.readinto"
_WRITES = "posix.write _io.FileIO.write"
COLUMNS = (
    _column("open", "posix.open _io.FileIO.__init__ _sqlite3.vfs.open", "EACCES EMFILE EIO"),
    _column("read", f"{_READS} posix.pread posix.readv _io.FileIO.readall _sqlite3.file.read", "EIO SHORT"),
    _column("write", f"{_WRITES} posix.pwrite posix.writev _sqlite3.file.write", "ENOSPC EIO SHORT"),
    _column("copy", "posix.sendfile posix.copy_file_range", "ENOSPC EIO"),
    _column("fsync", "posix.fsync posix.fdatasync _sqlite3.file.sync", "EIO ENOSPC"),
    _column("close", "posix.close _io.FileIO.close", "EIO"),
    _column("truncate", "posix.truncate posix.ftruncate _io.FileIO.truncate _sqlite3.file.truncate", "EIO"),
    _column("rename", "posix.rename posix.replace", "EACCES ENOSPC EIO"),
    _column("unlink", "posix.unlink posix.remove _sqlite3.vfs.delete", "EACCES EIO"),
    _column("mkdir", "posix.mkdir", "EACCES ENOSPC"),
    _column("rmdir", "posix.rmdir", "EACCES EBUSY"),
    _column("link", "posix.link posix.symlink", "EACCES ENOSPC"),
    _column("stat", "posix.stat posix.lstat", "EACCES"),
    _column("listdir", "posix.listdir posix.scandir", "EACCES EMFILE"),
    _column("chmod", "posix.chmod posix.fchmod posix.utime", "EPERM"),
    _column("pipe", "posix.pipe posix.pipe2 _socket.socketpair", "EMFILE"),
    _column("fork", "posix.fork _posixsubprocess.fork_exec posix.posix_spawn", "EAGAIN ENOMEM"),
    _column("lock", "fcntl.flock fcntl.lockf", "EAGAIN ENOLCK"),
    _column("socket", "_socket.socket.__init__", "EMFILE"),
    _column("connect", "_socket.socket.connect", "ECONNREFUSED ETIMEDOUT EHOSTUNREACH TIMEOUT"),
    _column("accept", "_socket.socket._accept", "ECONNABORTED EMFILE"),
    _column("recv", "_socket.socket.recv _socket.socket.recv_into", "ECONNRESET TIMEOUT SHORT"),
    _column("send", "_socket.socket.send _socket.socket.sendall", "ECONNRESET EPIPE TIMEOUT"),
    _column("select", "select.select select.epoll.poll", "ORDER"),
    _column("clock", "time.time time.time_ns _datetime.datetime.now time.clock_gettime", "STEP"),
)
_FULL_DISK = ("write", "copy", "mkdir", "link", "rename", "fsync")
"""Calls that fail, too, once a disk is full."""


def column_of(name: str) -> FaultColumn | None:
    """Return the calls that a user names: by the name of a column, of a gate, or of a function (`replace`)."""
    for column in COLUMNS:
        if name == column.name:
            return column
    for column in COLUMNS:
        gates = tuple(each for each in column.gates if name in (each, each.partition(".")[2]))
        if gates:
            return column._replace(name=name, gates=gates)
    return None


def faults_of(row: Row) -> tuple[str, ...]:
    """Return the faults that calls of a gate may have."""
    return next((column.faults for column in COLUMNS if row.full_name in column.gates), ())


def full_disk() -> Iterator[str]:
    """Yield the gates that fail with ENOSPC from the first such error on."""
    for column in COLUMNS:
        if column.name in _FULL_DISK:
            yield from column.gates


def error_number(fault: str) -> int:
    """Return the number of an error by its name; 0: it is no error."""
    found = getattr(errno, fault, 0)
    return found if isinstance(found, int) else 0
