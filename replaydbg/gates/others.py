"""Flags of some gates: after which ones the program may know what another process did, and which ones change names.

It may know that if it waited for the other process, or received a message.
"""

from __future__ import annotations

from replaydbg.gates.row import HEARS, NAMES, Row

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
    "libzmq": "zmq_msg_recv zmq_recv zmq_poll zmq_getsockopt",
    "_multiprocessing": "SemLock.acquire SemLock.__enter__ SemLock._get_value SemLock._is_zero",
}
CHANGE_NAMES = {
    "posix": "mkdir mkfifo mknod rmdir unlink remove rename replace link symlink setxattr removexattr",
    "_posixshmem": "shm_unlink",
    "_multiprocessing": "sem_unlink",
}
"""Calls that fail if they are made twice. By the time, `resume` tells whether one of them was made in flight."""

_FLAGS: dict[tuple[str, str], int] = {
    (module, name): flag
    for table, flag in ((_HEARING, HEARS), (CHANGE_NAMES, NAMES))
    for module, names in table.items()
    for name in names.split()
}


def marked(table: list[Row]) -> list[Row]:
    """Return the rows with these flags. Where HEARS is set, large shared memory is compared."""
    return [row._replace(flags=row.flags | _FLAGS.get((row.module, row.name), 0)) for row in table]
