"""What is said to a process of the engine and by it (replaydbg/native/engine.c has the other side)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from replaydbg.log.encode import text, varint, zigzag
from replaydbg.log.shapes import COUNT, ListOf, checked, decoded, one_of

VERSION = 5
"""Both sides come from one installation; the keeper refuses another number than its own."""

CLONE, RUN, WHERE, STACK, DIVERT, CHANGE, SPACE, OBJECT = b"C", b"R", b"W", b"L", b"D", b"M", b"I", b"O"
HEAP, FREED = b"G", b"N"
"""What a process is told."""

STOOD, LEFT, CLONED, ENDED, FRAMES, LIES, ANSWER, PICTURE = "S", "K", "C", "E", "L", "O", "A", "P"
"""What it says: it stands, it left a checkpoint, it was cloned, the program ended, the frames of a lane, where an
object lies, what was asked, a file with a snapshot of its heap. X in place of one of the last two says why not."""

MOST_BREAKS = 255
"""So many breaks a run has at most: the core has one byte for their number."""

ANY, STEP, NEXT, FINISH = range(4)
"""Where a step forward ends, besides at a count of lines: nowhere else, at the lane's next line, at the next one of the
same activation or of a caller, at a caller's."""


@dataclass(frozen=True, slots=True)
class Break:
    """A place where a run stops, or whose passages it counts."""

    file: str = ""
    """As the program's code objects name it; empty with a function: in any file."""
    line: int = 0
    """From 1; 0 with a function."""
    function: str = ""
    """Name or qualified name of a function: its first line."""
    stop_at: int = 1
    """Which passage stops the run, from 1; 0: none does."""


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step from a variable to a value: exactly one of the three is given."""

    attribute: str | None = None
    index: int | None = None
    key: str | None = None

    def encode(self) -> bytes:
        """Return it as the core reads it."""
        if self.attribute is not None:
            return varint(1) + zigzag(0) + text(self.attribute)
        if self.index is not None:
            return varint(2) + zigzag(self.index) + text("")
        assert self.key is not None, "one of three"
        return varint(3) + zigzag(0) + text(self.key)


@dataclass(frozen=True, slots=True)
class Watch:
    """A value whose changes are looked for: a local variable of one activation, or a module's, or an object, and what
    it leads to."""

    name: str
    """The variable; empty of an object."""
    module: str = ""
    """Of a module's variable: the module's name."""
    started: int = 0
    """Of a local variable: when its function's activation was started, as a count of lines."""
    first_line: int = 0
    """Of a local variable: where its function begins."""
    object: tuple[int, int] = (0, 0)
    """Where an object lies in all processes of the session, and its type."""
    steps: tuple[PathStep, ...] = ()
    """From the variable, or the object, to the value; at most 32."""
    stops: bool = True
    """Whether a change stops the run; otherwise it only counts them."""
    looks_at_returns: bool = False
    """Whether it is looked at when functions return as well as at each line."""
    is_cell: bool = False
    """Whether the variable's cell is meant, which functions share, and not what it holds."""

    def encode(self) -> bytes:
        """Return it as the core reads it."""
        flags = int(self.stops) | int(self.looks_at_returns) << 1 | int(self.is_cell) << 2
        kind = 3 if self.object[0] else 2 if self.module else 1
        numbers = (kind, flags, self.started, self.first_line, *self.object)
        head = b"".join(varint(each) for each in numbers)
        steps = b"".join(each.encode() for each in self.steps)
        return head + text(self.module) + text(self.name) + varint(len(self.steps)) + steps


@dataclass(frozen=True, slots=True)
class Judged:
    """A question whose answer is looked at as a value is: a change is one from not bad to bad, or back."""

    question: object
    """A plain value, for `judging` of inside.py."""
    stops: bool = False
    """Whether a change stops the run; otherwise it only counts them."""
    looks_at_returns: bool = False
    """Whether it is asked when functions return as well as at each line."""

    def encode(self) -> bytes:
        """Return it as the core reads it."""
        flags = int(self.stops) | int(self.looks_at_returns) << 1
        return varint(4) + varint(flags) + repr(self.question).encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class RunOrder:
    """An order to go on, until one of several things happens or the program ends."""

    until: int = 0
    """The count of lines at which to stop; 0: none."""
    rule: int = ANY
    """ANY, STEP, NEXT or FINISH."""
    lane: int = 0
    """The lane that the rule is for."""
    spacing: float = 0.0
    """Seconds of CPU time between the checkpoints that are left behind; 0: none are."""
    at_raises: bool = False
    """Whether an exception stops it where it is raised."""
    event: int = 0
    """Stand inside the line that asked for this event, as soon as it has been consumed; 0: at none."""
    point: int = 0
    """Stand inside the line `until`, at this point of it; 0: before it."""
    follows_path: bool = False
    """Whether the path of the innermost frame is told: its instructions, calls and events."""
    breaks: tuple[Break, ...] = ()
    """At most MOST_BREAKS."""
    watch: Watch | Judged | None = None
    """A value to look at, or a question to ask, line by line."""

    def encode(self) -> bytes:
        """Return it as the core reads it."""
        assert len(self.breaks) <= MOST_BREAKS, len(self.breaks)
        head = varint(self.until) + varint(int(self.spacing * 1e9)) + varint(self.rule) + varint(self.lane)
        head += varint(int(self.at_raises)) + varint(self.event) + varint(self.point) + varint(int(self.follows_path))
        breaks = b"".join(
            text(each.file + "\0") + text(each.function + "\0") + varint(each.line) + varint(each.stop_at)
            for each in self.breaks
        )
        watch = self.watch.encode() if self.watch is not None else varint(0)
        return head + varint(len(self.breaks)) + breaks + watch


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame on the stack of a lane."""

    file: str
    """As its code object names it."""
    line: int
    """The line that it executes; in the topmost frame of the running lane: that is about to run."""
    function: str
    """The qualified name."""
    first_line: int
    """Where its code begins."""
    started: int
    """The count of lines when this activation was started."""
    last: int
    """The count of its last line, the one that is about to run included."""
    before: int
    """The count of the line before that in the same activation; 0: none."""
    is_generator: bool
    """Whether it is of a generator or a coroutine: it may wait and go on."""
    unit: int = field(default=0, compare=False)
    """The instruction that it executes, or is about to, in code units from the beginning of its code."""

    @property
    def name(self) -> str:
        """The function's own name."""
        return self.function.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Lane:
    """A thread of the program."""

    id: int
    """0 is the main lane."""
    name: str
    """As the program named it; empty if it did not."""
    parent: int
    """The lane that started it."""
    waits_for: str
    """What it waits for, in words; empty: it could run."""
    last: int
    """The count of its last line; 0: none yet."""
    before: int
    """The count of the line before that; 0: none."""
    top: Frame | None
    """Its innermost frame."""


@dataclass(frozen=True, slots=True)
class Passages:
    """How often a break was passed in a run."""

    count: int
    first: int
    """The count of lines at the first passage; 0: none."""
    last: int


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes that a watch has seen in a run; counts of lines, 0 where there is none."""

    count: int
    first_seen: int
    """At this line the value was seen to have changed."""
    first_written: int
    """The line that had run then."""
    last_seen: int
    last_written: int
    born: int
    """1 if the last of them was that the object came to be in which, or of which, it is; else 0."""


@dataclass(frozen=True, slots=True)
class PathCall:
    """A function that a followed frame called."""

    unit: int
    """The instruction of the frame that called it, in code units."""
    is_direct: bool
    """Whether its bytecode called the function, without C code between."""
    started: int
    """The count of lines when the function's activation was started."""
    last: int
    """The count of its last line; 0: it has not returned."""
    returned: int
    """The instruction at which it returned; -1: it did not return."""
    value: int
    """The address of what it returned; 0: nothing."""
    type: int
    """The address of that object's type."""


@dataclass(frozen=True, slots=True)
class PathEvent:
    """An event that was consumed while a followed frame waited for it."""

    number: int
    unit: int
    """The instruction of the frame that led to it, in code units."""
    is_direct: bool
    """Whether no other Python function lies between."""


@dataclass(frozen=True, slots=True)
class FramePath:
    """What one frame did in a run, if that was to be followed."""

    is_cut: bool
    """Whether there was more than is told."""
    units: tuple[int, ...]
    """The instructions that it executed, in order, in code units."""
    calls: tuple[PathCall, ...]
    events: tuple[PathEvent, ...]


@dataclass(frozen=True, slots=True)
class Where:
    """Where a process stands: before a line, or inside one."""

    why: str
    """`count`, `break`, `rule`, `watch`, `raise`, `point` or `asked`."""
    count: int
    """Lines so far, the one that is about to run, or runs, included."""
    point: int
    """The last point that was passed in that line; 0: it has not begun, or has none yet."""
    event: int
    """Events consumed."""
    digest: int
    """64 bits over the path up to here."""
    lane: int
    """The lane that runs."""
    lanes: tuple[Lane, ...]
    """All that are alive."""
    stack: tuple[Frame, ...]
    """Of the running lane, innermost first; at most 1,000 frames: `Worker.stack` has them all."""
    depth: int
    """How many frames there are."""
    passages: tuple[Passages, ...]
    """One for each break of the run."""
    changes: Changes
    """What the watch saw."""
    path: FramePath
    """The path of the frame that was followed."""

    @property
    def top(self) -> Frame | None:
        """The innermost frame of the running thread; None: no Python code runs."""
        return self.stack[0] if self.stack else None


_FRAME = (str, COUNT, str, int, COUNT, COUNT, COUNT, range(2), int)
_LANE = (COUNT, str, COUNT, str, COUNT, COUNT, one_of((), (_FRAME,)))
_WHERE = {
    "why": str,
    "count": COUNT,
    "point": COUNT,
    "event": COUNT,
    "digest": int,
    "lane": COUNT,
    "lanes": ListOf(_LANE),
    "stack": ListOf(_FRAME),
    "depth": COUNT,
    "breakpoints": ListOf((COUNT, COUNT, COUNT)),
    "watch": (COUNT, COUNT, COUNT, COUNT, COUNT, range(2)),
    "path": (
        range(2),
        ListOf(COUNT),
        ListOf((COUNT, range(2), COUNT, COUNT, int, int, int)),
        ListOf((COUNT, COUNT, range(2))),
    ),
}
_ENDED = {"kind": str}
_OPTIONAL: dict[str, tuple[object, object]] = {
    "status": (int, 0),
    "event": (COUNT, 0),
    "count": (COUNT, 0),
    "own": (COUNT, 0),
    "written": (bytes, b""),
    "written_all": (COUNT, 0),
    "gate": (str, ""),
    "detail": (str, ""),
}
"""Fields that a report of an end may have, and what stands for one that it does not have."""


def read_where(payload: bytes) -> Where:
    """Return where a process says that it stands. Raises ForgedMessage."""
    told = decoded(payload, _WHERE, "position")
    return Where(
        why=told["why"],
        count=told["count"],
        point=told["point"],
        event=told["event"],
        digest=told["digest"] & (1 << 64) - 1,
        lane=told["lane"],
        lanes=tuple(_lane(each) for each in told["lanes"]),
        stack=tuple(_frame(each) for each in told["stack"]),
        depth=told["depth"],
        passages=tuple(Passages(*each) for each in told["breakpoints"]),
        changes=Changes(*told["watch"]),
        path=_path(*told["path"]),
    )


def read_stack(payload: bytes) -> tuple[int, tuple[Frame, ...]]:
    """Return how many frames a lane has, and some that follow each other, inner ones first. Raises ForgedMessage."""
    depth, frames = decoded(payload, (COUNT, ListOf(_FRAME)), "stack")
    return depth, tuple(_frame(each) for each in frames)


def read_here(payload: bytes) -> tuple[int, int, int]:
    """Return the number of a process (negative: why there is none), its lines, and its events. Raises ForgedMessage."""
    pid, count, event = decoded(payload, (range(-4096, 1 << 31), COUNT, COUNT), "checkpoint")
    return pid, count, event


def read_located(payload: bytes) -> tuple[int, int]:
    """Return the addresses of an object and of its type. Raises ForgedMessage."""
    address, kind = decoded(payload, (int, int), "address")
    return address, kind


def read_number(payload: bytes) -> int:
    """Return a number. Raises ForgedMessage."""
    number: int = decoded(payload, int, "number")
    return number


def read_ended(payload: bytes) -> dict[str, Any]:
    """Return how the program ended. Raises ForgedMessage."""
    told: dict[str, Any] = decoded(payload, _ENDED, "report of the end")
    for name, (shape, default) in _OPTIONAL.items():
        checked(told.get(name, default), shape, "report of the end")
    if told["kind"] in ("exit", "signal"):
        checked(told, {"status": int}, "report of the end")
    return told


def _frame(entry: list[Any]) -> Frame:
    file, line, function, first_line, started, last, before, is_generator, unit = entry
    return Frame(file, line, function, first_line, started, last, before, bool(is_generator), unit)


def _path(is_cut: int, units: list[int], calls: list[list[int]], events: list[list[int]]) -> FramePath:
    return FramePath(
        bool(is_cut),
        tuple(units),
        tuple(PathCall(unit, bool(is_direct), *rest) for unit, is_direct, *rest in calls),
        tuple(PathEvent(number, unit, bool(is_direct)) for number, unit, is_direct in events),
    )


def _lane(entry: list[Any]) -> Lane:
    number, name, parent, waits_for, last, before, top = entry
    return Lane(number, name, parent, waits_for, last, before, _frame(top[0]) if top else None)
