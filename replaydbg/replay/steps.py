"""Count the lines of a recorded run: positions, hits, and stopping at a line. Runs the program again, verified."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from replaydbg.errors import ReplaydbgError
from replaydbg.replay.clock import BreakpointHits, Hits, LineBefore, LineBreakpoint, Moment, Orders
from replaydbg.replay.launcher import replay
from replaydbg.replay.result import ReplayResult

MONITORING = "monitoring"
"""Lines are LINE events of `sys.monitoring` (Python 3.12 and later)."""
TRACING = "tracing"
"""Lines are those of a trace function (Python 3.11)."""


@dataclass(frozen=True, slots=True)
class ClockStop:
    """The position of a counting replay when it stopped as ordered; the line named has not run yet."""

    moment: Moment
    """The position."""
    count: int
    """Number of lines since the clock started, including this one."""
    digest: int
    """Of the path up to here."""
    stack: tuple[str, ...]
    """The program's frames, innermost last."""
    breakpoint: LineBreakpoint | None
    """The breakpoint that stopped it, if one did."""
    before: LineBefore | None
    """The target of a step backwards over calls (`activations`)."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The lines that a recorded program runs."""

    python: str
    """The version of Python that ran these lines; a position is meaningless for another one."""
    mechanism: str
    """MONITORING or TRACING: the same program has other lines under each."""
    start_event: int
    """The event after which counting began; 0: at the program's start."""
    total: int
    """Number of lines begun."""
    per_event: tuple[int, ...]
    """For each event after `start_event`: number of lines begun between the previous event and it."""
    digest: int
    """64 bits over the path: equal for equal places in equal order."""
    hits: tuple[Hits, ...]
    """Passages for each line, if requested."""
    breakpoints: tuple[BreakpointHits, ...]
    """In the order of the request."""
    stop: ClockStop | None
    """Where the replay was stopped; None: it ran to the end."""

    def moment(self, count: int) -> Moment:
        """Return the position of the line that is the `count`-th since the clock started."""
        before = 0
        for event, lines in enumerate(self.per_event, self.start_event):
            if count <= before + lines:
                return Moment(event, count - before)
            before += lines
        return Moment(self.start_event + len(self.per_event), count - before)


def count(
    path: Path,
    *,
    name: str = "",
    start_event: int = 0,
    stop_at: Moment | None = None,
    breakpoints: tuple[LineBreakpoint, ...] = (),
    hits: bool = False,
    activations: bool = False,
    stdout: int | None = None,
    stderr: int | None = None,
) -> Steps:
    """Replay the recording at `path` under the step clock and return its counts.

    `start_event` starts the clock when that event has been consumed, `stop_at` and the breakpoints' `stop_at` end the
    replay at a line. `name`, `stdout` and `stderr` are as for `replay`, except that the program's output is discarded
    by default. Raises what `replay` raises, and Divergence.
    """
    orders = Orders(start_event, stop_at, breakpoints, hits, activations)
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        result = replay(
            path,
            name=name,
            clock=orders,
            stdout=null if stdout is None else stdout,
            stderr=null if stderr is None else stderr,
        )
    finally:
        os.close(null)
    if result.divergence is not None:
        raise result.divergence
    return _steps(result, start_event)


def _steps(result: ReplayResult, start_event: int) -> Steps:
    report = result.clock
    assert report is not None, "asked for"
    if not report.is_started:
        raise ReplaydbgError(f"The recording has no event {start_event}: it ends after event {report.event}.")
    stop = None
    if report.has_stopped:
        moment = Moment(report.event, report.lines_since_event)
        stop = ClockStop(moment, report.lines, report.digest, result.stack, report.stopped_by, report.before)
    return Steps(
        python=result.python,
        mechanism=TRACING if result.python.startswith("3.11.") else MONITORING,
        start_event=start_event,
        total=report.lines,
        per_event=report.per_event,
        digest=report.digest,
        hits=report.hits,
        breakpoints=report.breakpoints,
        stop=stop,
    )
