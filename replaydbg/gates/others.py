"""Gates after which the program may know what another process did: it waited for it, or received a message."""

from __future__ import annotations

from replaydbg.gates.row import HEARS, Row

_HEARING = {
    "posix": """
    access eventfd_read fstat ftruncate getppid kill lockf lstat pread preadv read readinto readv scandir sched_yield
    sendfile splice copy_file_range stat system wait wait3 wait4 waitid waitpid
    """,
    "_io": "FileIO.read FileIO.readall FileIO.readinto FileIO.truncate",
    "builtins": "input",
    "fcntl": "fcntl flock lockf",
    "select": "select poll().poll epoll.poll",
    "time": "sleep",
    "_signal": "pause sigpending sigtimedwait sigwait sigwaitinfo",
    "_socket": """
    socket._accept socket.connect socket.connect_ex socket.recv socket.recv_into socket.recvfrom socket.recvfrom_into
    socket.recvmsg socket.recvmsg_into
    """,
    "_ssl": "_SSLSocket.read _SSLSocket.do_handshake",
    "_multiprocessing": "SemLock.acquire SemLock.__enter__ SemLock._get_value SemLock._is_zero",
}
_NAMES = frozenset((module, name) for module, names in _HEARING.items() for name in names.split())


def marked(table: list[Row]) -> list[Row]:
    """Return the rows, with HEARS in the flags of those named above: large shared memory is compared there."""
    return [row._replace(flags=row.flags | HEARS) if (row.module, row.name) in _NAMES else row for row in table]
