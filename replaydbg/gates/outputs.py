"""Gates whose effect others see: `record --durable` synchronises the log before them (the output commit rule).

The reasons for what is in the table, and what is not, are in docs/explanation/design/power-loss.md.
"""

from __future__ import annotations

from replaydbg.gates.row import AT_ONCE, OUTPUT, UNLESS_FILE, Row

_SEEN = {
    "posix": "fdatasync fsync kill killpg splice sync",
    "builtins": "input",
    "_signal": "pidfd_send_signal",
    "_socket": """
    socket.connect socket.connect_ex socket.send socket.sendall socket.sendmsg socket.sendmsg_afalg socket.sendto
    socket.shutdown
    """,
    "_sqlite3": "file.sync vfs.delete",
    "_ssl": "_SSLSocket.do_handshake _SSLSocket.shutdown _SSLSocket.write",
    "libc": """
    connect fdatasync fsync kill killpg posix_spawn posix_spawnp send sendmsg sendto shutdown splice sync system tgkill
    """,
    "libzmq": "zmq_connect zmq_msg_send zmq_send",
    "syslog": "syslog",
}
_WRITES = {
    "posix": "pwrite pwritev sendfile write writev",
    "_io": "FileIO.write",
    "libc": "pwrite pwrite64 sendfile sendfile64 write writev",
}
_STARTS = {
    "posix": "abort execv execve fork forkpty posix_spawn posix_spawnp system",
    "_posixsubprocess": "fork_exec",
}
_FLAGS = {
    (module, name): flags
    for table, flags in ((_SEEN, OUTPUT), (_WRITES, OUTPUT | UNLESS_FILE), (_STARTS, OUTPUT | AT_ONCE))
    for module, names in table.items()
    for name in names.split()
}


def with_outputs(table: list[Row]) -> list[Row]:
    """Return the rows, with OUTPUT and what belongs to it in the flags of those named above."""
    return [row._replace(flags=row.flags | _FLAGS.get((row.module, row.name), 0)) for row in table]
