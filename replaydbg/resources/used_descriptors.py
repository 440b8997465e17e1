"""Which descriptors a call was given: the gate decides which of its arguments are descriptors, not their values.

A signal number, a process id or a number of seconds is as small as a descriptor.
"""

from __future__ import annotations

from collections.abc import Iterator

from replaydbg.events.records import Event
from replaydbg.events.values import OpenFile
from replaydbg.gates.row import DESCRIPTOR
from replaydbg.gates.table import OWN
from replaydbg.resources.event_values import items, number_of


def _names(module: str, names: str) -> frozenset[str]:
    return frozenset(f"{module}.{name}" for name in names.split())


_PATH_OR_DESCRIPTOR = _names(
    "posix",
    """
    stat chdir chmod chown listdir scandir truncate utime statvfs pathconf execve getxattr setxattr listxattr
    removexattr
    """,
)
_FIRST = (
    frozenset(row.full_name for row in OWN if row.flags & DESCRIPTOR)
    | _PATH_OR_DESCRIPTOR
    | _names("select", "epoll.register epoll.modify epoll.unregister")
    | _names("_signal", "set_wakeup_fd pidfd_send_signal")
    | _names("_io", "FileIO.__init__")
    | _names("mmap", "mmap.__new__")
    | _names(
        "libc",
        """
        read __read_chk pread pread64 __pread_chk __pread64_chk readv preadv preadv64 write pwrite pwrite64 writev lseek
        lseek64 fstat fstat64 fstatfs fstatfs64 fstatvfs fstatvfs64 fgetxattr fchmod fchown ftruncate ftruncate64
        futimens fsync fdatasync fallocate fallocate64 posix_fallocate posix_fallocate64 flock lockf lockf64 fchdir
        sendfile sendfile64 copy_file_range splice dup dup2 dup3 isatty ttyname_r ioctl fcntl timerfd_settime
        timerfd_gettime inotify_add_watch inotify_rm_watch epoll_ctl epoll_wait epoll_pwait connect bind send sendto
        sendmsg setsockopt accept accept4 listen shutdown recv __recv_chk recvfrom recvmsg getsockname getpeername
        getsockopt openat openat64 __openat_2 __openat64_2 fstatat fstatat64 statx faccessat readlinkat mkdirat
        unlinkat renameat renameat2 linkat symlinkat fchmodat fchownat utimensat
        """,
    )
)
"""The first argument is a descriptor, or is one if it is a number."""
_SECOND = _names("posix", "sendfile copy_file_range splice")
_LISTS = {"select.select": (0, 1, 2), "_posixsubprocess.fork_exec": (3,)}
"""Which arguments are lists of descriptors."""
_KEYWORDS = {"dir_fd", "src_dir_fd", "dst_dir_fd"}
_IN_DIRECTORY = _names(
    "posix", "access link mkdir mkfifo mknod open readlink rename replace rmdir symlink unlink remove"
)
"""Gates that take one of these keywords, besides those above."""


def takes_descriptors(gate: str) -> bool:
    """Whether calls of a gate can have descriptors as arguments; files, which others can have, too, do not count."""
    return gate in _FIRST or gate in _IN_DIRECTORY or gate in _LISTS


def given_descriptors(event: Event) -> Iterator[int]:
    """Yield the descriptors among the arguments of a call."""
    arguments = event.arguments or ()
    for index, each in enumerate(arguments):
        is_descriptor = (index == 0 and event.gate in _FIRST) or (index == 1 and event.gate in _SECOND)
        found: list[object] = [each] if is_descriptor or isinstance(each, OpenFile) else []
        if index in _LISTS.get(event.gate, ()):
            found += items(each)
        if isinstance(each, dict):
            found += [value for name, value in each.items() if name in _KEYWORDS]
        yield from (number for value in found if (number := number_of(value)) >= 0)
