"""Reports of a process of the engine: positions, frames, changes, paths, and the end of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from replaydbg.classes import dataclass, field
from replaydbg.errors import ForgedMessage
from replaydbg.log.coding.shapes import COUNT, ListOf, checked, decoded, one_of
from replaydbg.replay.report import UNSURE_PLACE, place_in_doubt, unsure_text

EXIT, SIGNAL, END, COMPUTING, FENCE, DRIFT, REFUSED, UNANSWERED, STUCK = (
    "exit",
    "signal",
    "end",
    "computing",
    "fence",
    "drift",
    "refused",
    "unanswered",
    "stuck",
)
"""Kinds of reports of an end: the program exited or was killed by a signal; the recording ends, or does so while the
program computes; the fence could not be set up; the garbage collector differs; something outside was asked for in the
past; a changed run needs an input that was not recorded, or waits for one for ever. Others are divergences."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame on the stack of a thread."""

    file: str
    """As its code object names it."""
    line: int
    """The line that it executes; in the topmost frame of the running thread, the one that is about to run."""
    function: str
    """The qualified name."""
    first_line: int
    """The first line of its code."""
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
class CalledCode:
    """A function that was called."""

    file: str
    line: int
    """The first one of its code."""
    function: str
    """The qualified name."""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a function in a stretch of the run."""

    code: CalledCode
    parent: int
    """The call in which it began, counted from 1; 0: none of the stretch."""
    lane: int
    goes_on: bool
    """Whether it is a generator or a coroutine that had waited."""
    begun: int
    """The count of its first line."""
    ended: int
    """The count of lines at its end, or when it began to wait; 0: it has not ended in the stretch."""


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of a stretch of the run, in the order in which they began."""

    each: tuple[FunctionCall, ...] = ()
    is_cut: bool = False
    """Whether there were more than were wanted."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A thread of the program."""

    id: int
    """0 is the main thread."""
    name: str
    """As the program named it; empty if it did not."""
    parent: int
    """The thread that started it."""
    waits_for: str
    """A description of what it waits for; empty: it could run."""
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
class EvaluatedPassage:
    """A passage of a break at which its condition was true, or raised."""

    number: int
    """Of the break in its run, from 1."""
    count: int
    lane: int
    answer: tuple[str, str] | None
    """The condition's exception (empty: it was true), and the expression's value as text; None: that was too long."""


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
    """Whether there is no other Python function in between."""


@dataclass(frozen=True, slots=True)
class FramePath:
    """The execution of one frame in a run, if it was requested."""

    is_cut: bool
    """Whether there was more than is reported."""
    units: tuple[int, ...]
    """The instructions that it executed, in order, in code units."""
    calls: tuple[PathCall, ...]
    events: tuple[PathEvent, ...]


@dataclass(frozen=True, slots=True)
class Where:
    """The position of a process: before a line, or inside one."""

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
    """The running thread."""
    lanes: tuple[Lane, ...]
    """All that are alive."""
    stack: tuple[Frame, ...]
    """Of the running thread, innermost first; at most 1,000 frames: `EngineProcess.stack` has them all."""
    depth: int
    """How many frames there are."""
    passages: tuple[Passages, ...]
    """One for each break of the run."""
    evaluated: tuple[EvaluatedPassage, ...]
    """Those with a true condition, if one is evaluated."""
    changes: Changes
    """The changes that the watch saw, or the first one of several."""
    all_changes: tuple[Changes, ...]
    """Those of each watch."""
    path: FramePath
    """The path of the frame that was followed."""
    tracked: int
    """The count of the last line that the rule TRACK has met; 0: none."""
    calls: Calls
    """The calls of functions, if they were wanted."""

    @property
    def top(self) -> Frame | None:
        """The innermost frame of the running thread; None: no Python code runs."""
        return self.stack[0] if self.stack else None


@dataclass(frozen=True, slots=True)
class EndReport:
    """How a run ended."""

    kind: str
    """EXIT, SIGNAL, ... or the kind of a divergence."""
    status: int = 0
    """The exit code, or the number of the signal."""
    event: int = 0
    """The event at which it ended."""
    count: int = 0
    """Lines so far."""
    own: int = 0
    """The count of the program's own last line."""
    written: bytes = b""
    """The last output of a changed run since the change."""
    written_all: int = 0
    """Bytes of all its output since then."""
    gate: str = ""
    """The function that was called."""
    detail: str = ""
    """The reason; may be empty."""
    unsure: int = 0
    """The event before which a signal handler's place was ambiguous; 0: none was."""
    unsure_place: Sequence[Any] = ()
    """The signal's number, and file, line and function of that place; empty: there is none."""

    @property
    def doubt(self) -> str:
        """That a signal handler's place was ambiguous, as a sentence; empty: none was."""
        if not self.unsure:
            return ""
        text = unsure_text(self.unsure, place_in_doubt(self.unsure_place))
        return f"{text[0].upper()}{text[1:]}. Values from then on may differ."

    @property
    def reason(self) -> str:
        """The reason, or the kind."""
        return self.detail or self.kind


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
    "evaluated": ListOf((COUNT, COUNT, COUNT, bytes)),
    "watches": ListOf((COUNT, COUNT, COUNT, COUNT, COUNT, range(2))),
    "path": (
        range(2),
        ListOf(COUNT),
        ListOf((COUNT, range(2), COUNT, COUNT, int, int, int)),
        ListOf((COUNT, COUNT, range(2))),
    ),
    "tracked": COUNT,
    "calls": (range(2), ListOf((str, COUNT, str)), ListOf((COUNT, COUNT, COUNT, range(2), COUNT, COUNT))),
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
    "unsure": (COUNT, 0),
    "unsure_place": (UNSURE_PLACE, ()),
}
"""Optional fields of a report of an end: shape and default."""


def read_where(payload: bytes) -> Where:
    """Return the position that a process reports. Raises ForgedMessage."""
    fields_read = decoded(payload, _WHERE, "position")
    changes = tuple(Changes(*each) for each in fields_read["watches"])
    if not changes:
        raise ForgedMessage("it sent a position without the changes of a watch")
    return Where(
        why=fields_read["why"],
        count=fields_read["count"],
        point=fields_read["point"],
        event=fields_read["event"],
        digest=fields_read["digest"] & (1 << 64) - 1,
        lane=fields_read["lane"],
        lanes=tuple(_lane(each) for each in fields_read["lanes"]),
        stack=tuple(_frame(each) for each in fields_read["stack"]),
        depth=fields_read["depth"],
        passages=tuple(Passages(*each) for each in fields_read["breakpoints"]),
        evaluated=tuple(_evaluated(*each) for each in fields_read["evaluated"]),
        changes=changes[0],
        all_changes=changes,
        path=_path(*fields_read["path"]),
        tracked=fields_read["tracked"],
        calls=_calls(*fields_read["calls"]),
    )


def _calls(is_cut: int, codes: Sequence[tuple[str, int, str]], calls: Sequence[tuple[int, ...]]) -> Calls:
    found = []
    for number, (code, parent, lane, goes_on, begun, ended) in enumerate(calls):
        if code >= len(codes) or parent > number:
            raise ForgedMessage("it sent a call of a function, or by a call, that it does not know")
        found.append(FunctionCall(CalledCode(*codes[code]), parent, lane, bool(goes_on), begun, ended))
    return Calls(tuple(found), bool(is_cut))


def read_stack(payload: bytes) -> tuple[int, tuple[Frame, ...]]:
    """Return the number of frames of a thread, and some consecutive ones, inner ones first. Raises ForgedMessage."""
    depth, frames = decoded(payload, (COUNT, ListOf(_FRAME)), "stack")
    return depth, tuple(_frame(each) for each in frames)


def read_here(payload: bytes) -> tuple[int, int, int]:
    """Return the number of a process (negative: why there is none), its lines, and its events. Raises ForgedMessage."""
    pid, count, event = decoded(payload, (range(-4096, 1 << 31), COUNT, COUNT), "checkpoint")
    return pid, count, event


@dataclass(frozen=True, slots=True)
class Located:
    """Where a value lies."""

    object: tuple[int, int]
    """The addresses of the object and of its type; zeros: the value does not exist."""
    is_part: bool
    """Whether the value is no object: it lies in the memory of that one, as the items of arrays do."""


def read_located(payload: bytes) -> Located:
    """Return where a value lies. Raises ForgedMessage."""
    address, kind, is_part = decoded(payload, (int, int, range(2)), "address")
    return Located((address, kind), bool(is_part))


def read_number(payload: bytes) -> int:
    """Return a number. Raises ForgedMessage."""
    number: int = decoded(payload, int, "number")
    return number


def read_numbers(payload: bytes) -> list[int]:
    """Return a list of numbers. Raises ForgedMessage."""
    numbers: list[int] = decoded(payload, ListOf(COUNT), "list of numbers")
    return list(numbers)


def read_ended(payload: bytes) -> EndReport:
    """Return how the program ended. Raises ForgedMessage."""
    return end_report(decoded(payload, _ENDED, "report of the end"))


def end_report(read: Mapping[str, Any]) -> EndReport:
    """Return a report of the end from its fields; those that are missing have their defaults. Raises ForgedMessage."""
    known = {name: read.get(name, default) for name, (_, default) in _OPTIONAL.items()}
    for name, (shape, _) in _OPTIONAL.items():
        checked(known[name], shape, "report of the end")
    if read["kind"] in (EXIT, SIGNAL):
        checked(read, {"status": int}, "report of the end")
    return EndReport(kind=read["kind"], **known)


def _frame(entry: list[Any]) -> Frame:
    file, line, function, first_line, started, last, before, is_generator, unit = entry
    return Frame(file, line, function, first_line, started, last, before, bool(is_generator), unit)


def _evaluated(number: int, count: int, lane: int, payload: bytes) -> EvaluatedPassage:
    answer = tuple(decoded(payload, (str, str), "evaluated passage")) if payload else None
    return EvaluatedPassage(number, count, lane, answer)


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
