"""The resources of a process after the events that were read so far: the mutable side of `Resources`."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from replaydbg.events import linux
from replaydbg.events.records import Event
from replaydbg.resources.descriptions import Description, NumberTable
from replaydbg.resources.event_values import number_of
from replaydbg.resources.file_names import FileNames
from replaydbg.resources.kinds import (
    ChildProcess,
    FileMapping,
    MakingCall,
    ProcessSemaphore,
    SignalAction,
    TlsLoad,
    TlsSession,
    Unknown,
)
from replaydbg.resources.locked_ranges import LockedRanges
from replaydbg.resources.standard_input import InputFacts

START = MakingCall(0, 0, None)
"""The origin of what the process had when it began."""
INHERITED = Unknown("inherited, so its path, flags and offset are not recorded")


@dataclass(slots=True)
class TimerFacts:
    """A timer that was set."""

    kind: str
    seconds: float
    interval: float
    set_at: int
    """Nanoseconds from the start."""
    origin: MakingCall


@dataclass(slots=True)
class DatabaseFacts:
    """An open file of SQLite."""

    origin: MakingCall
    path: str
    is_database: bool
    lock: int = 0
    writes_log: bool = False
    """Whether it has the lock for writing to its write-ahead log."""
    reads_log: int = 0
    """How many locks for reading from it."""
    has_index: bool = False
    descriptions: list[Description] = field(default_factory=list)


class ProcessState:
    """A process while its log is read. The modules of actions change it."""

    def __init__(self, cwd: str, soabi: str) -> None:
        """Begin in the working directory `cwd`, without any descriptor. `soabi`: of the recorded interpreter."""
        self.open_flags = linux.open_flags(soabi)
        self.names = FileNames(cwd)
        self.numbers = NumberTable(self._found, self._closed)
        self.open: dict[Description, None] = {}
        """The open file descriptions in the order in which they were opened; those without numbers may be closed."""
        self.scans: list[Description] = []
        """Those of iterators of `scandir`."""
        self.tls: list[TlsSession] = []
        self.tls_loads: list[TlsLoad] = []
        self.locks = LockedRanges()
        self.flocks: dict[Description, tuple[bool, MakingCall]] = {}
        """Whether each lock is exclusive, and what took it."""
        self.mappings: list[FileMapping] = []
        """Those that were made, and keep a copy of their descriptor; see `live_mappings`."""
        self.mappings_without_copy: list[FileMapping] = []
        """Those with `trackfd=False`."""
        self.children: dict[int, ChildProcess] = {}
        self.timers: dict[str, TimerFacts] = {}
        self.handled: list[int] = []
        """Signals whose handlers ran since the last event; the next one may be the call that has sent one."""
        self.sent: dict[int, int] = {}
        """How many signals of timers the program has sent, maybe to itself, whose handlers have not run yet."""
        self.signals: dict[int, SignalAction] = {}
        self.wakeup: int | None = None
        self.semaphores: dict[str, ProcessSemaphore] = {}
        self.semaphore_names: dict[int, str] = {}
        """The name of the semaphore of each endpoint of the process."""
        self.databases: list[DatabaseFacts] = []
        self.endpoints: dict[int, int] = {}
        """The endpoint that each event used."""
        self.standard_input: tuple[Description, InputFacts] | None = None
        """The standard input with which the process began."""
        self._parked: dict[int, int] = {}
        """The last event before each thread waited inside a call that has not ended."""

    # ---- descriptors ----

    def origin(self, event: Event) -> MakingCall:
        """Return the origin of what an event made."""
        return MakingCall(event.number, event.lane, event.site)

    def opened(self, number: int, made: Description, event: Event, *, close_on_exec: bool | Unknown = True) -> None:
        """Add a descriptor that an event opened, with the lowest free number."""
        self.open[made] = None
        self.numbers.opened(number, made, self.origin(event), close_on_exec=close_on_exec)

    def guess(self, made: Description, event: Event, doubt: str) -> None:
        """Add a descriptor that a call opened without returning its number."""
        self.open[made] = None
        self.numbers.guess(made, self.origin(event), doubt)

    def used(self, number: int, event: Event) -> Description | None:
        """Return what a descriptor refers to that was used successfully; one that was not known is added."""
        found = self.numbers.used(number)
        if found is None and number >= 0:
            hidden = MakingCall(event.number, event.lane, None)
            found = Description("descriptor", hidden, _NOT_SHOWN)
            self.open[found] = None
            self.numbers.opened(number, found, hidden, close_on_exec=_NOT_SHOWN, is_lowest=False)
        return found

    def input_of(self, description: Description | None) -> InputFacts | None:
        """Return the facts about the standard input if that is what a description is."""
        if self.standard_input is None or description is not self.standard_input[0]:
            return None
        return self.standard_input[1]

    def descriptions(self, kind: str) -> Iterator[Description]:
        """Yield the open file descriptions of a kind."""
        return (each for each in self.open if each.kind == kind and each.numbers)

    def close(self, number: int, event: Event) -> None:
        """Follow a call that closed a descriptor, unless that was another one with this number.

        A thread that closes one gives way before its event is recorded. Another thread can get the number meanwhile.
        """
        facts = self.numbers.facts(number)
        parked = self._parked.get(event.lane)
        if facts is not None and (parked is None or facts.origin.event <= parked):
            self.release(number)

    def release(self, number: int) -> None:
        """Follow the closing of a descriptor."""
        description = self.numbers.get(number)
        if description is not None and description.node is not None:
            self.locks.closed(description.node)
        self.numbers.drop(number)

    def parked(self, lane: int, after: int) -> None:
        """Remember that a thread waits inside a call."""
        self._parked[lane] = after

    def goes_on(self, lane: int) -> None:
        """Forget that a thread waited: its call has ended."""
        self._parked.pop(lane, None)

    def absolute(self, path: str | bytes, base: object = None) -> str | Unknown:
        """Return the absolute path of an argument, relative to a descriptor of a directory if `base` is one."""
        number = number_of(base)
        return self.names.absolute(path, self.directory(number) if number >= 0 else None)

    def directory(self, number: int) -> str | Unknown:
        """Return the absolute path of a descriptor that was used as that of a directory."""
        description = self.numbers.used(number)
        if description is None or description.node is None:
            return Unknown(f"descriptor {number} is a directory whose path is not recorded")
        description.kind, description.can_seek = "directory", False
        return description.node.path

    def not_seekable(self, description: Description) -> None:
        """Take that a description has no offset: a pipe or fifo, unless it is known to be something else."""
        description.can_seek = False
        if description.kind == "file":
            description.kind, description.side = "pipe", _sides(description)

    def has_mode(self, description: Description, mode: int, size: int) -> None:
        """Take what `fstat` returned."""
        kind = next((kind for test, kind in _KINDS if test(mode)), "file")
        if description.kind in _VAGUE and kind != description.kind:
            description.kind = kind
            description.side = _sides(description) if kind == "pipe" else ""
        if description.kind in ("file", "memory") and description.node is not None:
            description.node.mode, description.node.size = mode, size

    def live_mappings(self) -> list[FileMapping]:
        """Return the mappings that may exist.

        Most keep a copy of their descriptor. If the number of the copy was given again, the mapping is gone.
        """
        kept = {facts.origin for number in self.numbers if (facts := self.numbers.facts(number)) is not None}
        self.mappings = [each for each in self.mappings if each.origin in kept]
        return [*self.mappings, *self.mappings_without_copy]

    def eventfd_read(self, description: Description) -> None:
        """Follow a read of an eventfd: it takes one, or all."""
        if isinstance(description.value, int):
            description.value = max(0, description.value - 1) if description.side == "semaphore" else 0

    def _found(self, description: Description) -> None:
        self.open[description] = None

    def _closed(self, description: Description) -> None:
        self.open.pop(description, None)
        self.flocks.pop(description, None)
        self.locks.forget(description)
        if description in self.scans:
            self.scans.remove(description)
        for epoll in self.descriptions("epoll"):
            if isinstance(epoll.watched, dict):
                epoll.watched = {n: m for n, m in epoll.watched.items() if self.numbers.get(n) is not None}


_NOT_SHOWN = Unknown("it was opened by code whose calls are not recorded")
_VAGUE = ("file", "descriptor", "inherited file", "passed descriptor", "inherited descriptor")
_KINDS = (
    (stat.S_ISDIR, "directory"),
    (stat.S_ISFIFO, "pipe"),
    (stat.S_ISSOCK, "socket"),
)


def _sides(description: Description) -> str:
    flags = description.flags
    return "both" if isinstance(flags, Unknown) else {0: "read", 1: "write"}.get(flags & linux.O_ACCMODE, "both")
