"""What a future does with each gate: some are made, some are answered, and any other one ends it without a verdict.

The reasons are in docs/explanation/design/futures.md. A gate that is not named here needs something from outside.
"""

from __future__ import annotations

from replaydbg.gates.row import ASKS, DRAWN, IF_INSIDE, STAYS, Row

_STAYS = {
    "posix": """
    close closerange pipe pipe2 memfd_create eventfd sched_yield _exit abort get_inheritable
    set_inheritable umask
    """,
    "_io": "FileIO.close FileIO.fileno",
    "time": """
    time time_ns monotonic monotonic_ns perf_counter perf_counter_ns process_time process_time_ns thread_time
    thread_time_ns clock_gettime clock_gettime_ns clock_getres sleep localtime gmtime ctime asctime strftime mktime
    tzset
    """,
    "_datetime": "datetime.now",
    "libc": "clock_of_locks",
    "select": "epoll.__new__ epoll.close epoll.poll epoll.fileno",
    "_socket": "socketpair socket.close close",
    "_thread": "get_native_id interrupt_main",
    "_signal": "signal getsignal pthread_sigmask siginterrupt raise_signal sigpending",
    "_imp": "release_lock",
    "sys": "getallocatedblocks getrefcount getunicodeinternedsize",
    "_tracemalloc": "get_traced_memory get_tracemalloc_memory _get_traces _get_object_traceback",
    "gc": "get_count get_stats set_debug collect",
    "_multiprocessing": """
    SemLock.__new__ SemLock._rebuild SemLock.acquire SemLock.release SemLock.__enter__ SemLock.__exit__ SemLock._count
    SemLock._is_mine SemLock._is_zero SemLock._get_value sem_unlink
    """,
    "_locale": "setlocale localeconv nl_langinfo getencoding",
    "resource": "getpagesize",
    "_sqlite3": """
    vfs.open vfs.delete vfs.access vfs.fullpath vfs.randomness vfs.sleep vfs.time vfs.lasterror file.close file.read
    file.write file.truncate file.sync file.size file.lock file.unlock file.reserved file.control file.sector
    file.device
    """,
    "_ssl": """
    _SSLContext.set_ciphers _SSLContext.get_ciphers _SSLContext._set_alpn_protocols _SSLContext.options
    _SSLContext.minimum_version _SSLContext.maximum_version _SSLContext.verify_flags
    """,
    "replaydbg": "key moment",
}
_IF_INSIDE = {
    "posix": """
    dup dup2 read readinto readv write writev eventfd_read eventfd_write get_blocking set_blocking fstat isatty lseek
    kill
    """,
    "_io": """
    FileIO.__init__ FileIO.read FileIO.readall FileIO.readinto FileIO.write FileIO.seek FileIO.tell FileIO.seekable
    FileIO.isatty FileIO._isatty_open_only
    """,
    "select": "select poll().poll epoll.register epoll.modify epoll.unregister",
    "_signal": "set_wakeup_fd",
    "_socket": """
    dup socket.__init__ socket.getsockname socket.getpeername socket.setsockopt socket.getsockopt socket.shutdown
    socket.recv socket.recvfrom socket.recv_into socket.recvfrom_into socket.send socket.sendall socket.sendmsg
    """,
}
_ASKS = {
    "posix": """
    access confstr cpu_count ctermid device_encoding get_terminal_size getcwd getcwdb getegid geteuid getgid
    getgrouplist getgroups getlogin getpgid getpgrp getpid getppid getpriority getresgid getresuid getsid getuid
    getxattr listdir listxattr lstat open pathconf readlink sched_getaffinity stat statvfs sysconf uname
    """,
    "_socket": """
    gethostname getprotobyname getservbyname getservbyport if_indextoname if_nameindex if_nametoindex getaddrinfo
    gethostbyname gethostbyname_ex gethostbyaddr getnameinfo
    """,
    "_ssl": "_SSLContext.set_default_verify_paths _SSLContext.keylog_filename get_default_verify_paths",
    "pwd": "getpwuid getpwnam getpwall",
    "grp": "getgrgid getgrnam getgrall",
    "resource": "getrlimit",
}
_DRAWN = {
    "_random": "Random.seed",
    "posix": "urandom getrandom",
}

_FLAGS: dict[tuple[str, str], int] = {
    (module, name): flag
    for table, flag in ((_STAYS, STAYS), (_IF_INSIDE, IF_INSIDE), (_DRAWN, DRAWN), (_ASKS, ASKS))
    for module, names in table.items()
    for name in names.split()
}


def with_futures(table: list[Row]) -> list[Row]:
    """Return the rows, each with what a future does with it."""
    return [row._replace(flags=row.flags | _FLAGS.get((row.module, row.name), 0)) for row in table]
