"""The deviations allowed in a replay of edited code where the recording has no answer: marks on gate table rows.

A gate without a mark is only answered by an event: without one the replay ends there.
"""

from __future__ import annotations

from replaydbg.gates.row import ACCEPTED, DESCRIPTOR, OPENS_FIRST, REPEATS, WRITTEN, Row

_CLOCKS_AND_CONSTANTS = {
    "time": """
    time time_ns monotonic monotonic_ns perf_counter perf_counter_ns process_time process_time_ns thread_time
    thread_time_ns clock_gettime clock_gettime_ns clock_getres localtime gmtime ctime asctime strftime mktime
    """,
    "_datetime": "datetime.now datetime.utcnow",
    "posix": """
    getpid getppid getpgrp getuid geteuid getgid getegid getgroups getresuid getresgid getlogin uname cpu_count times
    sysconf confstr device_encoding isatty get_terminal_size
    """,
    "_io": "FileIO.isatty FileIO._isatty_open_only FileIO.seekable FileIO.fileno",
    "_socket": "gethostname socket.getsockname socket.getpeername",
    "_thread": "get_native_id",
    "resource": "getrusage getpagesize",
    "_locale": "localeconv nl_langinfo getencoding",
    "sys": "getallocatedblocks getrefcount getunicodeinternedsize",
    "_tracemalloc": "get_traced_memory get_tracemalloc_memory",
    "gc": "get_count get_stats",
}
"""A clock may stand still.

The others are constant within a process, or return values that no program should rely on.
"""

_NOTHING_COMES_BACK = {
    "posix": "close closerange fsync fdatasync sync sched_yield set_blocking set_inheritable _exit abort",
    "_io": "FileIO.close",
    "_socket": "close socket.close socket.shutdown socket.sendall",
    "select": "epoll.close",
    "time": "sleep tzset",
    "_signal": "signal",
    "syslog": "syslog openlog closelog",
}
"""They count as done: the program cannot notice the difference."""

_OUTPUT = {
    "posix": "write pwrite writev pwritev",
    "_io": "FileIO.write",
    "_socket": "socket.send socket.sendall socket.sendto socket.sendmsg",
    "_ssl": "_SSLSocket.write MemoryBIO.write",
}
"""All bytes count as written; their number is the outcome. (Not for a database: it reads again what it wrote.)"""

_OF_A_DESCRIPTOR = {
    "posix": """
    read pread readinto readv preadv write pwrite writev pwritev close fstat fstatvfs lseek isatty fsync fdatasync
    ftruncate
    fchmod fchown fchdir fpathconf get_blocking set_blocking get_inheritable set_inheritable lockf posix_fadvise
    posix_fallocate ttyname tcgetpgrp tcsetpgrp eventfd_read eventfd_write dup dup2 login_tty get_terminal_size
    device_encoding timerfd_settime timerfd_settime_ns timerfd_gettime timerfd_gettime_ns sendfile splice
    copy_file_range
    """,
    "fcntl": "fcntl flock ioctl lockf",
    "termios": "tcgetattr tcsetattr tcsendbreak tcdrain tcflush tcflow tcgetwinsize tcsetwinsize",
    "_socket": "dup close",
}
"""The first argument is a descriptor: the same number may belong to another file later."""

_BRING_DESCRIPTORS = {"_io": "FileIO.__init__", "_socket": "socket.__init__ socketpair socket._accept"}
"""Their outcome begins with a new descriptor."""


def _names(table: dict[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset((module, name) for module, names in table.items() for name in names.split())


_MARKS: dict[tuple[str, str], int] = {}
for _flag, _table in (
    (REPEATS, _CLOCKS_AND_CONSTANTS),
    (ACCEPTED, _NOTHING_COMES_BACK),
    (WRITTEN, _OUTPUT),
    (DESCRIPTOR, _OF_A_DESCRIPTOR),
    (OPENS_FIRST, _BRING_DESCRIPTORS),
):
    for _name in _names(_table):
        _MARKS[_name] = _MARKS.get(_name, 0) | _flag


def with_liberties(table: list[Row]) -> list[Row]:
    """Return the rows, each with its marks from the tables above."""
    return [row._replace(flags=row.flags | _MARKS[row[:2]]) if row[:2] in _MARKS else row for row in table]
