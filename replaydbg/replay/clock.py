"""Orders to the step clock of a replay, and its report: values, and their encoding for the core."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypedDict

from replaydbg.classes import dataclass
from replaydbg.errors import ForgedMessage, ReplaydbgError
from replaydbg.log.coding.shapes import COUNT, ListOf, decoded, one_of

_REPORT = {
    "is_on": COUNT,
    "lines": COUNT,
    "own": COUNT,
    "since": COUNT,
    "event": COUNT,
    "digest": int,
    "hits": ListOf(ListOf(one_of(int, str))),
    "breakpoints": ListOf((COUNT, COUNT, COUNT)),
    "stopped": range(-1, 256),
    "before": one_of((), (range(2), COUNT, str, int, str)),
    "uncaught": one_of((), (COUNT, COUNT, str, str, int)),
}


@dataclass(frozen=True, slots=True)
class LineBreakpoint:
    """A line whose passages are counted, and at one of which a replay may stop."""

    file: str
    """The file name as in the program's code objects."""
    line: int
    """From 1."""
    stop_at: int = 0
    """The passage at which the replay stops, before the line runs; 0: none."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A position: the number of consumed events, then the number of lines begun since."""

    event: int
    """From 0, the start of the program."""
    step: int
    """From 1; the last of these lines has not run yet."""
    point: int = 0
    """A point inside that line, after this number of events and writes to standard streams; 0: before it."""


class ClockBoot(TypedDict):
    """The fields for the core."""

    fd: int
    steps_fd: int
    start_event: int
    stop_event: int
    stop_step: int
    hits: bool
    activations: bool
    breakpoints: list[tuple[str, int, int]]
    """File, line, and the passage at which to stop."""


@dataclass(frozen=True, slots=True)
class Orders:
    """Orders to the clock."""

    start_event: int = 0
    """The clock starts when this event has been consumed; 0: with the program's first line."""
    stop_at: Moment | None = None
    """Where the replay ends; None: at the end of the recording."""
    breakpoints: tuple[LineBreakpoint, ...] = ()
    """At most 255."""
    hits: bool = False
    """Whether passages are counted for each line."""
    activations: bool = False
    """Whether the clock tracks the previous line of the same frame (or of its caller) for the position where it
    stops.
    """

    def as_boot(self, fd: int, steps_fd: int) -> ClockBoot:
        """Return the fields for the core."""
        return {
            "fd": fd,
            "steps_fd": steps_fd,
            "start_event": self.start_event,
            "stop_event": self.stop_at.event if self.stop_at is not None else 0,
            "stop_step": self.stop_at.step if self.stop_at is not None else 0,
            "hits": self.hits,
            "activations": self.activations,
            "breakpoints": [(each.file, each.line, each.stop_at) for each in self.breakpoints],
        }


@dataclass(frozen=True, slots=True)
class Hits:
    """How many times each line of one function (or class body, or module) was begun."""

    file: str
    """The file name as in its code object."""
    function: str
    """The qualified name; `<module>` for a module."""
    first_line: int
    """The first line of the function."""
    lines: dict[int, int]
    """Line number to number of passages, in the order of the lines; only lines that were passed."""


@dataclass(frozen=True, slots=True)
class BreakpointHits:
    """The result for a breakpoint."""

    breakpoint: LineBreakpoint
    """The breakpoint as requested."""
    count: int
    """Number of passages."""
    first: int
    """The first passage, counted in lines since the clock started; 0: none."""
    last: int
    """The last one."""


@dataclass(frozen=True, slots=True)
class LineBefore:
    """The target of a step backwards over calls."""

    is_same_activation: bool
    """Whether it ran in the same activation of the same frame; False: it is the caller's."""
    count: int
    """Number of lines since the clock started."""
    file: str
    """The file name as in its code object."""
    line: int
    """From 1."""
    function: str
    """The qualified name."""


@dataclass(frozen=True, slots=True)
class ClockReport:
    """The clock's counts until the replay ended."""

    is_started: bool
    """False: the replay ended before `start_event`."""
    lines: int
    """Number of lines begun since the clock started."""
    last_own: int
    """The count of the last line that is not of a library; 0: none ran."""
    lines_since_event: int
    """Number of lines after the last event."""
    event: int
    """Number of consumed events."""
    digest: int
    """64 bits over the path: equal for equal code objects and instructions in equal order."""
    per_event: tuple[int, ...]
    """For each event after the start: number of lines begun between the previous event and it."""
    hits: tuple[Hits, ...]
    """By file and line; empty unless requested."""
    breakpoints: tuple[BreakpointHits, ...]
    """In the order of the request."""
    has_stopped: bool
    """Whether it stopped at a requested stop."""
    stopped_by: LineBreakpoint | None = None
    """The breakpoint that stopped it, if one did."""
    before: LineBefore | None = None
    """None unless `activations` was requested, or if no such line ran since the clock started."""
    uncaught: tuple[Any, ...] = ()
    """For the debugger's index: of the exception that ended the program the line's count, the lane, type, message
    and address; empty: there was none, or it must be found among all raised exceptions.
    """


def read_report(data: bytes, steps: bytes, orders: Orders) -> ClockReport:
    """Return the core's report; raises ReplaydbgError if it ended without one."""
    if not data:
        raise ReplaydbgError(
            "The replay ended before it reported the line counts: the interpreter was killed or crashed."
        )
    report = decoded(data, _REPORT, "report of the step clock")
    stopped: int = report["stopped"]
    if stopped > len(orders.breakpoints) or len(report["breakpoints"]) != len(orders.breakpoints):
        raise ForgedMessage("it reported unknown breakpoints")
    return ClockReport(
        is_started=bool(report["is_on"]),
        lines=report["lines"],
        last_own=report["own"],
        lines_since_event=report["since"],
        event=report["event"],
        digest=report["digest"] & (1 << 64) - 1,
        per_event=tuple(read_varints(steps)),
        hits=tuple(sorted(map(_hits, report["hits"]), key=lambda each: (each.file, each.first_line, each.function))),
        breakpoints=tuple(
            BreakpointHits(asked, *counts)
            for asked, counts in zip(orders.breakpoints, report["breakpoints"], strict=True)
        ),
        has_stopped=stopped != 0,
        stopped_by=orders.breakpoints[stopped - 1] if stopped > 0 else None,
        before=_before(report["before"]),
        uncaught=tuple(report["uncaught"]),
    )


def read_varints(data: bytes) -> Iterator[int]:
    """Yield the unsigned numbers encoded in `data`. Raises ForgedMessage if one has more than 64 bits."""
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            yield number
            number = shift = 0
        else:
            shift += 7
            if shift > 63:
                raise ForgedMessage("it wrote a number of more than 64 bits")


def _hits(entry: list[Any]) -> Hits:
    file, function, first, *numbers = entry if len(entry) >= 3 else (0, 0, 0)
    if not (type(file) is type(function) is str and type(first) is int and len(numbers) % 2 == 0):
        raise ForgedMessage("it reported malformed counts of lines")
    if not all(type(each) is int for each in numbers):
        raise ForgedMessage("it reported malformed counts of lines")
    return Hits(file, function, first, dict(zip(numbers[::2], numbers[1::2], strict=True)))


def _before(entry: list[Any]) -> LineBefore | None:
    return LineBefore(bool(entry[0]), *entry[1:]) if entry else None
