"""What the step clock of a replay is told, and what it reports: values, and their way to the core and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from replaydbg.errors import ForgedMessage, ReplaydbgError
from replaydbg.log.shapes import COUNT, ListOf, decoded, one_of

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
class Breakpoint:
    """A line whose passages are counted, and at one of which a replay may stop."""

    file: str
    """The file as the program's code objects name it."""
    line: int
    """From 1."""
    stop_at: int = 0
    """The replay stops at this passage, before the line runs; 0: at none."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A position: so many events consumed, then so many lines begun since."""

    event: int
    """From 0, the start of the program."""
    step: int
    """From 1; the last of these lines has not run yet."""
    point: int = 0
    """Inside that line, behind so many events and writes to standard streams; 0: before it."""


@dataclass(frozen=True, slots=True)
class Orders:
    """What the clock does."""

    start_event: int = 0
    """It starts when this event has been consumed; 0: with the program's first line."""
    stop_at: Moment | None = None
    """Where the replay ends; None: where the recording does."""
    breakpoints: tuple[Breakpoint, ...] = ()
    """At most 255."""
    hits: bool = False
    """Whether passages are counted for each line."""
    activations: bool = False
    """Whether the clock knows, where it stops, which line the same frame (or its caller) was at before."""

    def as_boot(self, fd: int, steps_fd: int) -> dict[str, Any]:
        """Return what the core is told."""
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
    """How often the lines of one function (or class body, or module) were begun."""

    file: str
    """The file as its code object names it."""
    function: str
    """The qualified name; `<module>` for a module."""
    first_line: int
    """Where it begins."""
    lines: dict[int, int]
    """Line number to number of passages, in the order of the lines; only those that were passed."""


@dataclass(frozen=True, slots=True)
class BreakpointHits:
    """What became of a breakpoint."""

    breakpoint: Breakpoint
    """As it was asked for."""
    count: int
    """Passages."""
    first: int
    """The first passage, counted in lines since the clock started; 0: none."""
    last: int
    """The last one."""


@dataclass(frozen=True, slots=True)
class LineBefore:
    """The line that a step backwards over calls goes to."""

    is_same_activation: bool
    """It ran in the same activation of the same frame; False: it is the caller's."""
    count: int
    """Lines since the clock started."""
    file: str
    """As its code object names it."""
    line: int
    """From 1."""
    function: str
    """The qualified name."""


@dataclass(frozen=True, slots=True)
class ClockReport:
    """What the clock counted until the replay ended."""

    is_started: bool
    """False: the replay ended before `start_event`."""
    lines: int
    """Lines begun since the clock started."""
    last_own: int
    """The count of the last line that is not of a library; 0: none ran."""
    lines_since_event: int
    """Those after the last event."""
    event: int
    """Events consumed."""
    digest: int
    """64 bits over the path: equal for equal code objects and instructions in equal order."""
    per_event: tuple[int, ...]
    """For each event after the start: lines begun between the one before and it."""
    hits: tuple[Hits, ...]
    """By file and line; empty unless asked for."""
    breakpoints: tuple[BreakpointHits, ...]
    """In the order asked for."""
    has_stopped: bool
    """Whether it stopped where it was told to."""
    stopped_by: Breakpoint | None = None
    """The breakpoint that did it, if one did."""
    before: LineBefore | None = field(default=None)
    """None unless `activations` was asked for, or if no such line ran since the clock started."""
    uncaught: tuple[Any, ...] = ()
    """For the debugger's index: of the exception that ended the program the line's count, the lane, type, message and
    address; empty: there was none, or it is to be looked for among all that were raised."""


def read_report(data: bytes, steps: bytes, orders: Orders) -> ClockReport:
    """Return what the core reported; raises ReplaydbgError if it ended without a report."""
    if not data:
        raise ReplaydbgError("The replay ended without the step clock's report: the interpreter was killed or crashed.")
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
    """Yield the unsigned numbers that `data` is made of. Raises ForgedMessage if one has more than 64 bits."""
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
