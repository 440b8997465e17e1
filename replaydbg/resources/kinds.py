"""The resources of a process at a moment as frozen values: one class for each kind.

A descriptor is a number; an open file description (`Handle`) is what it refers to, and several descriptors can share
one: they then have one offset and the same flags (open(2)).
"""
# Longer than other modules: it is one list, and its readers want all kinds in one place.

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from replaydbg.classes import dataclass
from replaydbg.events.linux import OpenFlags, open_flags
from replaydbg.events.records import Site
from replaydbg.events.values import ContentRef, Value

EventNumber: TypeAlias = int
"""The number of an event, from 1; 0: before the first one."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A fact that the event log does not have."""

    reason: str
    """Why, as a clause without a full stop."""


@dataclass(frozen=True, slots=True)
class MakingCall:
    """The call that made a resource."""

    event: EventNumber
    """Its event; 0: the process had it when it began."""
    lane: int
    """The thread that called."""
    site: Site | None
    """The gate and the line of the call; None: the process had it when it began, or it was opened unseen."""


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A descriptor of the process."""

    number: int
    """From 0."""
    origin: MakingCall
    """The call that made this number: it opened it, or copied another one."""
    close_on_exec: bool | Unknown
    """Whether a program that the process starts does not get it."""
    doubt: str | None
    """Why it may be closed, or have another number; None: it is certain."""


@dataclass(frozen=True, slots=True)
class Handle:
    """An open file description, with the descriptors that refer to it."""

    descriptors: tuple[Descriptor, ...]
    """By number."""
    origin: MakingCall
    """The call that opened it."""
    flags: int | Unknown
    """The access mode and status flags as `F_GETFL` returns them (`O_RDWR`, `O_APPEND`, `O_NONBLOCK`, `O_DIRECTORY`),
    without `O_LARGEFILE`. Some numbers depend on the machine that recorded, see `Resources.open_flags`. Blocking mode
    that a socket object set by itself is missing.
    """
    children: tuple[int, ...]
    """Running child processes that have it, too."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of its descriptors."""
        return tuple(each.number for each in self.descriptors)


@dataclass(frozen=True, slots=True)
class LastFileWrite:
    """The last write to an open file that moved its offset, or was done at a given one."""

    event: EventNumber
    """Its event."""
    offset: int | Unknown
    """Where it began, in bytes."""
    length: int
    """How many bytes were written."""
    digest: bytes | None
    """4 bytes that identify what was written; None: not recorded (the kernel copied it from another file)."""


@dataclass(frozen=True, slots=True)
class LastFileRead:
    """The last read of an open file that returned something, if the process has not changed the file since."""

    event: EventNumber
    """Its event."""
    offset: int
    """Where it began, in bytes."""
    data: bytes | ContentRef
    """The bytes that were read."""


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A regular file, a device, or another file with a path."""

    handle: Handle
    path: str | bytes
    """As the program gave it."""
    absolute: str | Unknown
    """Its absolute path, after the renames that the process did; symbolic links are not resolved."""
    is_regular: bool | Unknown
    """Whether it is a regular file."""
    offset: int | Unknown
    """The current offset, in bytes."""
    size: int | Unknown
    """Its size in bytes, if no other process has changed it."""
    is_deleted: bool
    """Whether the process removed or replaced it, or it never had a name (`O_TMPFILE`)."""
    last_write: LastFileWrite | None
    """None: it was not written to through this handle, or the process has changed the file since."""
    last_read: LastFileRead | None = None
    """None: nothing was read through this handle, or it is not known where, or the process has changed the file since.
    """


@dataclass(frozen=True, slots=True)
class OpenedDirectory:
    """A directory."""

    handle: Handle
    path: str | bytes
    """As the program gave it."""
    absolute: str | Unknown
    """Its absolute path."""


@dataclass(frozen=True, slots=True)
class OpenedPipe:
    """One end of a pipe, or an open fifo."""

    handle: Handle
    side: str
    """`read` or `write`; `both` for a fifo opened for both."""
    path: str | None
    """The absolute path of a fifo; None: a pipe."""
    other_end: tuple[int, ...]
    """The descriptors of its other end that the process has itself."""


class SocketState(Enum):
    """How far a socket is."""

    NEW = "new"
    BOUND = "bound"
    LISTENING = "listening"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    PEER_CLOSED = "closed by the peer"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class SocketOption:
    """An option that the program set with `setsockopt`."""

    level: int
    option: int
    value: Value


@dataclass(frozen=True, slots=True)
class TlsSession:
    """TLS over a socket, or over two buffers in memory (asyncio)."""

    origin: MakingCall
    is_server: bool | Unknown
    """Which side the process is."""
    hostname: str | None
    """The peer's name as the program gave it."""
    descriptor: int | None
    """The socket; None: buffers in memory, and it may no longer exist."""


@dataclass(frozen=True, slots=True)
class TlsLoad:
    """A load of a TLS context from files: certificates, keys, parameters. The context may no longer exist."""

    origin: MakingCall
    call: str
    """The method or attribute of the context, such as `load_cert_chain`."""
    files: tuple[str | Unknown | None, ...]
    """The absolute path of each argument that is a file, in their order; None: it was not given."""


@dataclass(frozen=True, slots=True)
class OpenedSocket:
    """A socket."""

    handle: Handle
    family: int | Unknown
    """Such as `socket.AF_INET`."""
    type: int | Unknown
    """Such as `socket.SOCK_STREAM`."""
    protocol: int | Unknown
    state: SocketState
    bound: Value | Unknown
    """The address of this end as Python has it; None: not bound."""
    backlog: int | None
    """Of a listening one."""
    peer: Value | Unknown
    """The address of the other end; None: there is none."""
    is_accepted: bool
    """Whether `accept` made it."""
    pair: tuple[int, ...] | None
    """Of one of `socketpair()`: the descriptors of the other one that the process has itself; None: not of a pair."""
    shut: tuple[str, ...]
    """The directions that `shutdown` ended: `read`, `write`."""
    is_non_blocking: bool | Unknown
    """Whether its calls return at once."""
    options: tuple[SocketOption, ...]
    """In the order in which they were set, the last value of each."""
    tls: TlsSession | None


@dataclass(frozen=True, slots=True)
class OpenedTerminal:
    """A terminal, or one side of a pseudoterminal."""

    handle: Handle
    side: str | None
    """`master` or `slave`; None: not made by this process."""
    path: str | None


@dataclass(frozen=True, slots=True)
class Watched:
    """A descriptor that is registered with an epoll."""

    number: int
    mask: int
    """The events that it is registered for, such as `select.EPOLLIN`."""


@dataclass(frozen=True, slots=True)
class OpenedEpoll:
    """An epoll."""

    handle: Handle
    watched: tuple[Watched, ...] | Unknown
    """The registered descriptors, by number."""


@dataclass(frozen=True, slots=True)
class OpenedEventFd:
    """An eventfd."""

    handle: Handle
    value: int | Unknown
    """Its counter."""
    is_semaphore: bool
    """Whether each read takes one."""


@dataclass(frozen=True, slots=True)
class OpenedTimerFd:
    """A timerfd."""

    handle: Handle
    clock: int
    """Such as `time.CLOCK_MONOTONIC`."""
    settings: tuple[Value, ...] | None
    """The arguments of the last `timerfd_settime`, without the descriptor; None: it was not set."""
    set_by: MakingCall | None


@dataclass(frozen=True, slots=True)
class OpenedPidFd:
    """A pidfd."""

    handle: Handle
    pid: int


@dataclass(frozen=True, slots=True)
class OpenedMemory:
    """A file in memory: of `memfd_create`, or shared memory of POSIX (`shm_open`)."""

    handle: Handle
    name: str
    is_shared_memory: bool
    """Whether it has a name that other processes can open."""
    is_unlinked: bool
    """Whether the process removed its name."""
    offset: int | Unknown
    size: int | Unknown
    last_write: LastFileWrite | None


@dataclass(frozen=True, slots=True)
class OpenedOther:
    """A descriptor of another kind, or of one that the log does not show."""

    handle: Handle
    kind: str
    """A description of it, as a noun phrase."""
    reason: str
    """Why no more is known."""


OpenResource: TypeAlias = (
    OpenedFile
    | OpenedDirectory
    | OpenedPipe
    | OpenedSocket
    | OpenedTerminal
    | OpenedEpoll
    | OpenedEventFd
    | OpenedTimerFd
    | OpenedPidFd
    | OpenedMemory
    | OpenedOther
)
"""Whatever a descriptor can refer to."""


@dataclass(frozen=True, slots=True)
class FileMapping:
    """A file that was mapped into memory. It may no longer be: what ends a mapping is not recorded."""

    origin: MakingCall
    path: str | Unknown
    """The absolute path of the file, or the name of memory."""
    length: int | Unknown
    """In bytes."""
    offset: int
    """Where it begins in the file, in bytes."""
    is_written: bool
    """Whether what the program stores in it is written to the file: it is shared, and not only read."""


@dataclass(frozen=True, slots=True)
class SqliteDatabase:
    """An open database file of SQLite."""

    origin: MakingCall
    path: str
    """Its absolute path; empty: a temporary database."""
    lock: str | Unknown
    """`none`, `shared`, `reserved`, `pending` or `exclusive`."""
    transaction: str | Unknown
    """`none`, `read`, or `write`: changes that are not committed, which are lost if the process ends here."""
    files: tuple[str, ...]
    """Other files of it that are open: the rollback journal, the write-ahead log and its index."""


@dataclass(frozen=True, slots=True)
class FileLock:
    """A lock of a file."""

    kind: str
    """`flock`, `lockf` (POSIX, of the process) or `ofd` (POSIX, of the open file description)."""
    is_exclusive: bool
    path: str | Unknown
    """The absolute path of the file."""
    start: int
    """The first byte of it; 0 for `flock`."""
    length: int
    """In bytes; 0: up to the end, however far that moves."""
    descriptors: tuple[int, ...]
    """Through which it is held."""
    origin: MakingCall


@dataclass(frozen=True, slots=True)
class RunningThread:
    """A thread of the program."""

    lane: int
    """0: the main one."""
    name: str
    waits_for: str | None
    """`lock`: a lock, condition or queue of the process (which one is not recorded); or the gate of the call that it is
    in, such as `fcntl.flock`; None: it can go on.
    """
    event: EventNumber
    """The call that it is in; for a lock, its last call before. 0: not recorded."""
    site: Site | None
    """The line of that call: for a lock the wait is somewhere after it."""
    descriptor: int | None
    """The descriptor that the call waits on."""


@dataclass(frozen=True, slots=True)
class ProcessTimer:
    """A timer that sends a signal: of `signal.alarm` or `signal.setitimer`."""

    kind: str
    """`real`, `virtual` or `prof`; `alarm` uses the real one."""
    seconds: float
    """Time from setting it to the first signal."""
    interval: float
    """Time between signals in seconds; 0: one signal."""
    remaining: float | Unknown
    """Seconds up to the next signal."""
    origin: MakingCall


@dataclass(frozen=True, slots=True)
class SignalAction:
    """The action that the program set for a signal."""

    number: int
    name: str
    """Such as `SIGTERM`."""
    action: str
    """`function`, `ignore`, or `default`."""
    origin: MakingCall


@dataclass(frozen=True, slots=True)
class ChildProcess:
    """A child process that this process started."""

    pid: int
    command: tuple[str, ...]
    """The program with its arguments; empty: it was forked."""
    is_reaped: bool
    """Whether its end was waited for."""
    exit_code: int | None
    """Its exit code, or minus the number of the signal that killed it; None: not waited for."""
    origin: MakingCall


@dataclass(frozen=True, slots=True)
class ProcessSemaphore:
    """A semaphore or lock of `multiprocessing`."""

    name: str
    kind: str
    """`semaphore` or `recursive lock`."""
    maximum: int
    value: int | Unknown
    """How often it can be acquired now, if no other process did."""
    is_unlinked: bool
    origin: MakingCall
    is_inherited: bool = False
    """Whether the process was forked by one that has it, too."""


@dataclass(frozen=True, slots=True)
class InputPart:
    """Bytes that the program read from its standard input one after the other."""

    offset: int
    """Where they began."""
    length: int
    data: bytes | ContentRef
    """Their digest (BLAKE2b), or the bytes themselves."""


@dataclass(frozen=True, slots=True)
class StandardInput:
    """The standard input that the process began with, as far as it was read. What is buffered was read, too."""

    position: int
    """The offset of the next byte. If it began at an offset that is not recorded, the first byte that was read has 0.
    """
    count: int
    """How many bytes were read."""
    own: int
    """How many of these the process itself has read; the others were read before it was forked."""
    parts: tuple[InputPart, ...]
    is_known: bool
    """Whether the log has all bytes that were read."""


@dataclass(frozen=True, slots=True)
class Resources:
    """All resources of a process at a moment."""

    event: EventNumber
    """After this event."""
    cwd: str | Unknown
    """The working directory."""
    opened: tuple[OpenResource, ...]
    """The open descriptions, by their lowest number."""
    mappings: tuple[FileMapping, ...]
    databases: tuple[SqliteDatabase, ...]
    locks: tuple[FileLock, ...]
    """Locks of files that are held."""
    threads: tuple[RunningThread, ...]
    """All threads that run, with what they wait for. Which thread holds a lock of `threading` is not recorded."""
    timers: tuple[ProcessTimer, ...]
    signals: tuple[SignalAction, ...]
    """By number."""
    wakeup: int | None
    """The descriptor of `signal.set_wakeup_fd`."""
    children: tuple[ChildProcess, ...]
    """In the order in which they were started."""
    semaphores: tuple[ProcessSemaphore, ...]
    tls: tuple[TlsSession, ...]
    """Those over buffers in memory."""
    tls_loads: tuple[TlsLoad, ...]
    """In the order of the calls."""
    standard_input: StandardInput | None = None
    """None: the process began without one."""
    open_flags: OpenFlags = open_flags("")
    """The numbers in `handle.flags` that depend on the processor of the machine that recorded."""

    def by_number(self) -> dict[int, OpenResource]:
        """The open description of each descriptor."""
        return {number: each for each in self.opened for number in each.handle.numbers}
