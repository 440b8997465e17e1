"""Read from the log what a program that goes live needs besides its resources, and what it has done since a moment."""

from __future__ import annotations

import fcntl
import re
from collections.abc import Mapping

from replaydbg.classes import NamedTuple, dataclass
from replaydbg.events.records import Control, ControlKind, Entry, Event
from replaydbg.events.show import show_call
from replaydbg.log.entries.selected_events import PassedEvents
from replaydbg.log.reader import Recording
from replaydbg.resources.event_values import argument, integer, number_of
from replaydbg.resources.follow import ResourceHistory
from replaydbg.resources.used_descriptors import given_descriptors, takes_descriptors
from replaydbg.resume.calls.name_acts import GATES as CHANGE_NAMES
from replaydbg.resume.calls.name_acts import NameActs, NameState
from replaydbg.resume.outside_acts import OutsideAct, outside_act
from replaydbg.resume.plan_rows import Fate, PlanRow

MOST_ACTS = 10_000
"""How many acts after the moment a plan has, the newest ones."""

SLACK_NS = 20_000_000
"""Time stamps of files may be this much behind the clock: the kernel takes those of its last tick."""


class LaterEvent(NamedTuple):
    """The first event of a thread after the moment: its call was in flight then."""

    number: int
    gate: str
    raised: bool


@dataclass(frozen=True, slots=True)
class Past:
    """The contents of the log about the run up to a moment, and about the rest of it."""

    events: int
    """The number of events in the log."""
    has_ended: bool
    """Whether the program reached its end."""
    last_ns: int
    """When the last event before the moment happened, at the earliest: nanoseconds since the epoch."""
    umask: int | None
    """The mask that the program set for the modes of new files; None: it set none."""
    attributes: tuple[PlanRow, ...]
    """Other attributes that the program has set for its process."""
    databases: Mapping[str, int]
    """The first event after the moment that wrote to an SQLite database, by the name of its file."""
    synchronised: frozenset[str]
    """Those of them that were synchronised later: a power cut does not undo that."""
    loaded_ns: Mapping[int, int]
    """When each call ended by which a TLS context loaded something, by event: nanoseconds since the epoch."""
    used: frozenset[int]
    """Descriptors that calls were given."""
    acts: tuple[OutsideAct, ...]
    """Its acts outside after the moment, the newest first; at most MOST_ACTS."""
    act_count: int
    """How many these are in all."""
    printed_count: int
    """How many of those wrote to standard output or standard error."""
    later: Mapping[int, LaterEvent]
    """By thread, its first event after the moment. Threads without one were in a call that the log does not have."""
    begun_ns: Mapping[int, int]
    """By thread, when its call in flight began, at the earliest, if it is one that makes or removes names of files:
    nanoseconds since the epoch."""
    names: Mapping[str, NameState]
    """The program's own last act before the moment on each name of a file, by its path as the program gave it."""


def read_past(recording: Recording, event: int | None) -> Past:
    """Read the log once. `event`: the last one before the moment; None: the last of the log."""
    reader = PastReader(recording, event, MOST_ACTS)
    for entry in recording.events():
        reader.add(entry)
    return reader.past()


def read_acts(recording: Recording, event: int) -> tuple[OutsideAct, ...]:
    """Return all acts after `event`, however many: one that was not undone would be there twice."""
    reader = PastReader(recording, event, None)
    for entry in recording.events():
        reader.add(entry)
    return reader.past().acts


class PastReader:
    """Reads the entries of a log in order, for `Past`."""

    def __init__(self, recording: Recording, event: int | None, most_acts: int | None = MOST_ACTS) -> None:
        """`event`: the last one before the moment; None: the last of the log. `most_acts`: None: all are kept."""
        self._last_event = event
        self._most_acts = most_acts
        self.start_ns = recording.log_header.start_ns if recording.log_header is not None else 0
        """When the program started: nanoseconds since the epoch; 0: the log's header does not have it yet."""
        self._umask = recording.header.umask
        self._time_ns = self._events = self._act_count = 0
        self.has_ended = False
        """Whether the program reached its end."""
        self._attributes: dict[str, PlanRow] = {}
        self._databases: dict[str, int] = {}
        self._synchronised: set[str] = set()
        self._hidden_locks = 0
        self._loaded_ns: dict[int, int] = {}
        self._used: set[int] = set()
        self._acts: list[OutsideAct] = []
        self._later: dict[int, LaterEvent] = {}
        self._name_acts = NameActs()
        self._printed_count = 0
        # Only acts after a moment need it: which files their descriptors lead to.
        self._history = ResourceHistory(recording, ()) if event is not None else None

    def add(self, entry: Entry) -> None:
        """Read the next entry."""
        if isinstance(entry, Control):
            if self._last_event is None or entry.after <= self._last_event:
                self._name_acts.add(entry)
            self.has_ended = self.has_ended or entry.kind is ControlKind.END
        else:
            self._add_event(entry)
        if self._history is not None:
            self._history.apply(entry)

    def _add_event(self, entry: Event) -> None:
        self._events = entry.number
        if self._last_event is None or entry.number <= self._last_event:
            self._add_before(entry)
            return
        self._later.setdefault(entry.lane, LaterEvent(entry.number, entry.gate, entry.raised))
        if entry.gate == _SYNCHRONISES_DATABASE and entry.outcome == 0 and _database(entry) in self._databases:
            self._synchronised.add(_database(entry))
        elif entry.gate in _ACTS and not entry.raised:
            self._act_count += 1
            if entry.gate in _DATABASE_WRITES and entry.arguments:
                self._databases.setdefault(_database(entry), entry.number)
            act = self._act(entry)
            self._printed_count += act.is_standard
            self._acts.append(act)
            if self._most_acts is not None and len(self._acts) > 2 * self._most_acts:
                del self._acts[: self._most_acts]

    def _act(self, event: Event) -> OutsideAct:
        assert self._history is not None  # it is after a moment
        return outside_act(event, self._history.state)

    def add_passed(self, events: PassedEvents) -> None:
        """Read events before the moment whose gates are not `is_noted`."""
        self._events, self._time_ns = events.last, events.time_ns
        self._name_acts.add_passed(events)

    def _add_before(self, entry: Event) -> None:
        self._time_ns = entry.time_ns
        self._name_acts.add(entry)
        self._used.update(given_descriptors(entry))
        if not is_noted(entry.gate):
            return
        if entry.gate == "posix.umask" and entry.arguments and isinstance(entry.arguments[0], int):
            self._umask = entry.arguments[0]
        elif entry.gate.startswith(_LOADS):
            self._loaded_ns[entry.number] = entry.time_ns
        elif (row := _attribute(entry)) is not None:
            self._attributes[entry.gate] = row
        _follow_listing(entry, self._attributes)
        self._follow_lock(entry)

    def _follow_lock(self, event: Event) -> None:
        """Note a lock by an object of a class with `fileno`: the event does not show the descriptor."""
        if event.gate not in _FILE_LOCKS or event.raised or not event.arguments or number_of(event.arguments[0]) >= 0:
            return
        is_released = integer(argument(event, 1)) & fcntl.LOCK_UN
        self._hidden_locks = max(0, self._hidden_locks - 1) if is_released else self._hidden_locks + 1
        if self._hidden_locks:
            reason = "the recording does not show which file it is of"
            self._attributes.setdefault(event.gate, PlanRow("file locks", Fate.REFUSED, show_call(event), reason))
        else:
            for gate in _FILE_LOCKS:
                self._attributes.pop(gate, None)

    def past(self) -> Past:
        """Return what was read so far."""
        acts = self._acts if self._most_acts is None else self._acts[-self._most_acts :]
        return Past(
            events=self._events,
            has_ended=self.has_ended,
            last_ns=self.start_ns + self._time_ns - SLACK_NS,
            umask=self._umask,
            attributes=tuple(self._attributes.values()),
            databases=dict(self._databases),
            synchronised=frozenset(self._synchronised),
            loaded_ns={event: self.start_ns + time_ns for event, time_ns in self._loaded_ns.items()},
            used=frozenset(self._used),
            acts=tuple(acts[::-1]),
            act_count=self._act_count,
            printed_count=self._printed_count,
            later=dict(self._later),
            begun_ns={lane: self.start_ns + time_ns - SLACK_NS for lane, time_ns in self._name_acts.begun().items()},
            names=self._name_acts.names(self.start_ns),
        )


def _database(event: Event) -> str:
    """Return the name of the database of a call, which is given the file or one of its journals."""
    return _JOURNAL.sub("", str(argument(event, 0)))


def is_noted(gate: str) -> bool:
    """Whether events of a gate before the moment matter for more than their time."""
    return gate in _NOTED or gate in CHANGE_NAMES or gate.startswith(_LOADS) or takes_descriptors(gate)


def _follow_listing(event: Event, rows: dict[str, PlanRow]) -> None:
    """Note a directory that is being listed: an event of its iterator does not show which one it is of."""
    if event.gate == "posix.scandir" and not event.raised:
        reason = "if the program has not finished listing it, the listing begins again"
        rows[_LISTING] = PlanRow("directories", Fate.LOST, f"{show_call(event)} at event {event.number}", reason)
    elif event.gate == "posix.ScandirIterator.close" or (
        event.gate == "posix.ScandirIterator.__next__" and event.outcome is None
    ):
        rows.pop(_LISTING, None)


def _attribute(event: Event) -> PlanRow | None:
    """Return the row of something that the program has set for its process, and that nobody sets again."""
    if event.raised:
        return None
    if event.gate in _PRIVILEGES:
        return PlanRow("process", Fate.REFUSED, show_call(event), f"set at event {event.number}, and not set again")
    if event.gate in _ATTRIBUTES:
        return PlanRow("process", Fate.LOST, show_call(event), f"set at event {event.number}, and not set again")
    if event.gate == _ZMQ and event.outcome:
        reason = f"made at event {event.number}; its sockets cannot be made again"
        return PlanRow("ZeroMQ", Fate.REFUSED, show_call(event), reason, is_final=True)
    return None


def _names(module: str, names: str) -> frozenset[str]:
    return frozenset(f"{module}.{name}" for name in names.split())


_LISTING = "posix.scandir"
_ZMQ = "libzmq.zmq_ctx_new"
"""Its context: a replay has none, see native/libc/zmq.c."""
_LOADS = "_ssl._SSLContext."
_FILE_LOCKS = _names("fcntl", "flock lockf")
_PRIVILEGES = _names(
    "posix",
    "setuid setgid seteuid setegid setreuid setregid setresuid setresgid setgroups initgroups chroot unshare setns",
)
# The core sets again what else there is: limits, priorities, blocked signals (native/resume/process.c).
_ATTRIBUTES = _names("posix", "sched_setaffinity sched_setparam sched_setscheduler setpgid setpgrp setsid") | _names(
    "resource", "prlimit"
)
_ACTS = (
    _names("_io", "FileIO.write FileIO.truncate")
    | _names(
        "posix",
        "write pwrite writev pwritev copy_file_range sendfile splice mkdir rmdir rename replace link symlink unlink "
        "remove mkfifo mknod chmod fchmod chown fchown lchown truncate ftruncate utime setxattr removexattr "
        "fork forkpty posix_spawn posix_spawnp system kill killpg",
    )
    | _names("_socket", "socket.send socket.sendall socket.sendto socket.sendmsg socket.connect")
    | _names("_ssl", "_SSLSocket.write")
    | _names("_posixsubprocess", "fork_exec")
    | _names("_posixshmem", "shm_unlink")
    | _names("_sqlite3", "file.write file.truncate vfs.delete")
)
_NOTED = (
    _PRIVILEGES
    | _ATTRIBUTES
    | _FILE_LOCKS
    | _names("posix", "umask scandir ScandirIterator.close ScandirIterator.__next__")
    | {_ZMQ}
)
_DATABASE_WRITES = _names("_sqlite3", "file.write file.truncate")
_SYNCHRONISES_DATABASE = "_sqlite3.file.sync"
_JOURNAL = re.compile(r"-(?:journal|wal)\Z")
