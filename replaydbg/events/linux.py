"""Numbers of Linux, which every recording contains, under the names that Python has for them.

The machine that reads may run another system, whose own modules lack some of them or have other numbers. The few that
depend on the processor are in `OpenFlags`.
"""

from __future__ import annotations

from replaydbg.classes import NamedTuple

_SIGNALS = """
HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ
VTALRM PROF WINCH IO PWR SYS
"""
SIGNALS = {number: f"SIG{name}" for number, name in enumerate(_SIGNALS.split(), 1)} | {34: "SIGRTMIN", 64: "SIGRTMAX"}
"""Names of signals by their numbers."""
SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGPIPE, SIGALRM, SIGTERM = 1, 2, 3, 9, 13, 14, 15
SIGCHLD, SIGVTALRM, SIGPROF = 17, 26, 27

EBADF, EAGAIN, ESPIPE, EPIPE = 9, 11, 29, 32
ECONNABORTED, ECONNRESET, EISCONN, ENOTCONN, ETIMEDOUT, EALREADY, EINPROGRESS = 103, 104, 106, 107, 110, 114, 115

O_RDONLY, O_WRONLY, O_RDWR, O_ACCMODE = 0, 1, 2, 3
O_CREAT, O_EXCL, O_NOCTTY, O_TRUNC, O_APPEND, O_NONBLOCK = 0o100, 0o200, 0o400, 0o1000, 0o2000, 0o4000
O_ASYNC, O_NOATIME, O_CLOEXEC = 0o20000, 0o1000000, 0o2000000

F_DUPFD, F_SETFD, F_GETFL, F_SETFL, F_SETLK, F_SETLKW = 0, 2, 3, 4, 6, 7
F_OFD_SETLK, F_OFD_SETLKW, F_DUPFD_CLOEXEC = 37, 38, 1030
FD_CLOEXEC = 1
F_RDLCK, F_WRLCK, F_UNLCK = 0, 1, 2
F_ULOCK, F_TEST = 0, 3
LOCK_SH, LOCK_EX, LOCK_NB, LOCK_UN = 1, 2, 4, 8
F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE = 2, 4, 8

_FAMILIES = """
UNSPEC UNIX INET AX25 IPX APPLETALK NETROM BRIDGE ATMPVC X25 INET6 ROSE - NETBEUI SECURITY KEY NETLINK PACKET ASH ECONET
ATMSVC RDS SNA IRDA PPPOX WANPIPE LLC - - CAN TIPC - - - - - - - ALG - VSOCK - QIPCRTR
"""
FAMILIES = {number: f"AF_{name}" for number, name in enumerate(_FAMILIES.split()) if name != "-"}
"""Names of families of sockets by their numbers."""
SOCKET_TYPES = {1: "SOCK_STREAM", 2: "SOCK_DGRAM", 3: "SOCK_RAW", 4: "SOCK_RDM", 5: "SOCK_SEQPACKET"}
"""Names of types of sockets by their numbers."""
SOCK_STREAM, SOCK_NONBLOCK, SOCK_CLOEXEC = 1, 0o4000, 0o2000000
SOL_SOCKET, SCM_RIGHTS, SO_ERROR = 1, 1, 4

EFD_SEMAPHORE, EFD_CLOEXEC = 1, 0o2000000
WNOWAIT, CLD_EXITED, CLD_KILLED, CLD_DUMPED = 0x1000000, 1, 2, 3


class OpenFlags(NamedTuple):
    """Flags of open() whose numbers depend on the processor of the machine that recorded."""

    direct: int
    """`O_DIRECT`"""
    large_file: int
    """`O_LARGEFILE`, which the kernel sets in every 64-bit process, where Python has it as 0."""
    directory: int
    """`O_DIRECTORY`"""
    no_follow: int
    """`O_NOFOLLOW`"""
    unnamed: int
    """`O_TMPFILE`, which contains `O_DIRECTORY`."""


_X86_64 = OpenFlags(direct=0o40000, large_file=0o100000, directory=0o200000, no_follow=0o400000, unnamed=0o20200000)
_ARM_64 = OpenFlags(direct=0o200000, large_file=0o400000, directory=0o40000, no_follow=0o100000, unnamed=0o20040000)


def open_flags(soabi: str) -> OpenFlags:
    """Return the flags in recordings of an interpreter, by the SOABI of its build (`cpython-311-aarch64-linux-gnu`)."""
    return _ARM_64 if "-aarch64-" in soabi else _X86_64


def exit_status(status: int) -> int | None:
    """Return the exit code in a status of `wait()`, negative for a signal; None: the process has only stopped."""
    number = status & 0x7F
    if number == 0x7F:
        return None
    return -number if number else status >> 8 & 0xFF
