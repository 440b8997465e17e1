"""Rows for clocks, entropy, databases and the network."""

from __future__ import annotations

from replaydbg.gates.row import (
    ALWAYS,
    ARGS,
    BOTH,
    CLOSES,
    COPIES,
    DIGEST,
    FILLS,
    MAKES_NOTHING,
    NOTED,
    OPENS,
    SELF,
    Row,
    rows,
)

CLOCKS: list[Row] = [
    *rows(
        "time",
        """
        time time_ns monotonic monotonic_ns perf_counter perf_counter_ns process_time process_time_ns thread_time
        thread_time_ns
        """,
        MAKES_NOTHING,
    ),
    *rows(
        "time",
        """
        clock_gettime clock_gettime_ns clock_getres clock_settime clock_settime_ns sleep localtime gmtime ctime asctime
        strftime mktime
        """,
    ),
    *rows("time", "tzset", BOTH),
    *rows("time", "pthread_getcpuclockid", ARGS | ALWAYS, "takes_ident"),
    *rows("_datetime", "datetime.now", 0, "dt_now"),
    *rows("_datetime", "datetime.utcnow", 0, "dt_utcnow"),
    *rows("_lsprof", "Profiler.getstats", 0, "profile_entries"),
]

ENTROPY: list[Row] = [
    *rows("_random", "Random.seed", 0, "random_seed"),
    *rows("_uuid", "generate_time_safe", 0),
    *rows("_ssl", "RAND_bytes RAND_pseudo_bytes RAND_status"),
]

DATABASES: list[Row] = [
    *rows("_sqlite3", "vfs.fullpath vfs.randomness", ARGS | FILLS, "native"),
    *rows("_sqlite3", "vfs.open vfs.delete vfs.access vfs.sleep vfs.time vfs.lasterror", ARGS, "native"),
    *rows("_sqlite3", "file.read file.control file.shm_map file.shm_lock", ARGS | FILLS, "native"),
    *rows(
        "_sqlite3",
        """
        file.close file.truncate file.sync file.size file.lock file.unlock file.reserved file.sector file.device
        file.shm_unmap
        """,
        ARGS,
        "native",
    ),
    *rows("_sqlite3", "file.write", ARGS | DIGEST, "native"),
]
"""SQLite is recorded at its virtual file system: the library itself runs in replay too."""

NETWORK: list[Row] = [
    *rows(
        "_socket",
        """
        gethostname sethostname getnameinfo getservbyname getservbyport getprotobyname if_nameindex if_nametoindex
        if_indextoname
        """,
    ),
    *rows("_socket", "gethostbyname gethostbyname_ex gethostbyaddr getaddrinfo", ARGS, "takes_host"),
    *rows("_socket", "dup", ARGS | OPENS | COPIES),
    *rows("_socket", "close", ARGS | CLOSES | BOTH, "os_close"),
    *rows("_socket", "socket.__init__", ARGS, "slot"),
    *rows("_socket", "socketpair", ARGS, "socket_pair"),
    *rows("_socket", "socket.close", ARGS | SELF | BOTH),
    *rows(
        "_socket",
        """
        socket.listen socket.getsockname socket.getpeername socket.setsockopt socket.shutdown socket.recv
        socket.recvfrom
        """,
        ARGS | SELF,
    ),
    *rows("_socket", "socket.bind socket.connect socket.connect_ex", ARGS | SELF, "takes_address"),
    *rows("_socket", "socket.getsockopt", ARGS | SELF),
    *rows("_socket", "socket._accept", ARGS | SELF | OPENS, "socket_accept"),
    *rows("_socket", "socket.recv_into socket.recvfrom_into", ARGS | SELF | FILLS, "socket_recv_into", 0),
    *rows("_socket", "socket.send socket.sendall", ARGS | SELF | DIGEST, buffer=0),
    *rows("_socket", "socket.sendto", ARGS | SELF | DIGEST, "takes_address", 0),
    *rows("_socket", "socket.sendmsg socket.sendmsg_afalg", ARGS | SELF | DIGEST, "socket_sendmsg", 0),
    *rows("_socket", "socket.recvmsg", ARGS | SELF, "socket_recvmsg"),
    *rows("_socket", "socket.recvmsg_into", ARGS | SELF | FILLS, "socket_recvmsg_into", 0),
    *rows("_ssl", "_SSLContext._wrap_socket", 0, NOTED),
]
"""Single-lane sockets; the network with everything that waits comes with lanes."""
