"""The entries of an event log as frozen values: crossings, which are numbered, and control records between them."""

from __future__ import annotations

from enum import Enum

from replaydbg.classes import dataclass
from replaydbg.events.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the program from which a gate was crossed."""

    gate: str
    """The gate's name, such as `time.time`."""
    file: str | None
    """The source file as in the code object; None if there was no Python frame."""
    function: str | None
    """The qualified name of the function; None without a Python frame."""
    line: int | None
    """The line of the call; None without a Python frame, or if the code has no line there."""
    instruction: int
    """Offset of the calling instruction in its code object, in bytes."""

    def __str__(self) -> str:
        return "(no Python frame)" if self.file is None else f"{self.file}:{self.line} in {self.function}"


@dataclass(frozen=True, slots=True)
class Event:
    """One crossing of a gate, as recorded."""

    number: int
    """From 1, in the order in which crossings ended."""
    lane: int
    """The lane that crossed; 0 is the main lane."""
    site: Site
    """The gate, and the place of the call."""
    arguments: tuple[Value, ...] | None
    """The arguments that a replay checks (keyword arguments as a dict at the end); None if there are none to check."""
    raised: bool
    """Whether the outcome was raised."""
    outcome: Value
    """The value that was returned or raised: an ExceptionValue, or None for what program code raised inside the
    crossing.
    """
    filled: Value
    """The content written into the caller's buffer; None if there is none."""
    digest: bytes | None
    """4 bytes that identify the output of the program here; None if there is none."""
    time_ns: int
    """Nanoseconds from the start to the last clock mark before this event."""

    @property
    def gate(self) -> str:
        """The gate's name."""
        return self.site.gate


class ControlKind(Enum):
    """The kind of a control record."""

    SIGNAL_INSIDE = "a signal handler runs inside the next call"
    SIGNAL_BETWEEN = "a signal handler runs between two calls"
    TIME = "so much time has passed"
    END = "the program ended"
    NOTE = "noted"
    LANE = "another thread continues"
    CHILD = "a child process was started"
    COLLECTOR = "garbage collections so far"
    MEMORY = "shared memory changed in map"
    CALLBACK = "a callback of the program runs inside the next call"
    LANE_STARTED = "a thread is started"
    MARK = "the program is at"
    SERIALS = "the next serial of identity is"
    NO_MEMORY = "a memory allocation failed; bytes"
    CHECKSUM = "a checksum of what follows"
    CHAOS = "threads are interleaved at random from here on; seed"
    STREAM = "an operation other than writing on standard stream"


class SwitchReason(Enum):
    """Why a lane gave way to another one."""

    LOCK = "waits for a lock"
    CROSSING = "waits inside a call"
    PREEMPTED = "used up its time slice"
    ENDED = "has ended"


@dataclass(frozen=True, slots=True)
class Control:
    """An entry of the log that is not a crossing and has no number of its own."""

    kind: ControlKind
    """Its kind."""
    after: int
    """The number of the event before it; 0 before the first."""
    lane: int
    """The lane to which it belongs."""
    time_ns: int
    """Nanoseconds from the start to the last clock mark, its own included."""
    number: int | None = None
    """Signal number, nanoseconds, exit code, lane, process id, collections or map, depending on the kind."""
    note: tuple[str, str] | None = None
    """For NOTE: its kind and its text."""
    fingerprint: bytes | None = None
    """For SIGNAL_BETWEEN: identifies the place; 8 bytes of the stack, then 8 for each level of its state, and for each
    chunk of the contents that it reaches.
    """
    computed_us: int | None = None
    """For SIGNAL_BETWEEN: microseconds of CPU time since the last record, at least; None: not recorded."""
    instruction: int | None = None
    """For SIGNAL_BETWEEN: the instruction after which the handler ran."""
    name: str | None = None
    """For LANE_STARTED: the name of the thread; for MARK: the program's text."""
    why: SwitchReason | None = None
    """For LANE: why the lane before gave way."""
    ticks: int | None = None
    """For LANE: its ticks since the last event or switch; for SIGNAL_BETWEEN too, if they were counted."""


Entry: TypeAlias = Event | Control
"""Any entry of an event log, without definitions."""


@dataclass(frozen=True, slots=True)
class WorldAnswer:
    """An answer of the file system to the import system."""

    operation: str
    """`stat`, `listdir`, `open_code`, `getcwd` ..."""
    path: str
    """The path requested."""
    asked: int
    """The number of the request, from 1, from which on this was the answer, for each operation and path."""
    raised: bool
    """Whether the outcome was raised."""
    outcome: Value
    """The answer, or the exception (an ExceptionValue)."""
