"""Questions about a run as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from replaydbg.debugger.bisection.bisect_results import Bisected, Probe
from replaydbg.debugger.bisection.predicates import Predicate
from replaydbg.debugger.bisection.run_bisection import begin_bisection
from replaydbg.debugger.calls.call_tree import CallTree, call_tree, calls_between
from replaydbg.debugger.frame_queries import At
from replaydbg.debugger.object_export import Export, export
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import Breakpoint, LastWrite, Logged, Moment, Output
from replaydbg.debugger.source.own_code import OwnCode
from replaydbg.debugger.stops import breakpoint_search
from replaydbg.debugger.writes import last_write
from replaydbg.debugger.writes.last_cell_write import why_cell
from replaydbg.debugger.writes.named_cells import cell_named
from replaydbg.debugger.writes.value_history import ValueHistory
from replaydbg.engine.protocol import Break
from replaydbg.engine.reports import Calls


class RunQueries:
    """Questions about the whole run, asked from the current position."""

    def __init__(self, view: ReplayView) -> None:
        self._view = view

    def output(self, stream: int | None = None) -> tuple[Output, ...]:
        """Return the program's output before the current position."""
        view = self._view
        here = (view.here.count, view.here.moment.point)
        return tuple(
            each
            for each in view.index.output
            if (each.count, each.point) < here and (stream is None or each.stream == stream)
        )

    def why(self, expression: str, frame: int = 0, *, lane: int | None = None, with_origins: bool = True) -> LastWrite:
        """Return the last write of a variable, an attribute or an item before here. Raises UsageError, AskFailed.

        `with_origins`: also search for what the value was made of; not of cells of data frames.
        """
        self._view.work.begin(f"searching for the last write of {expression}")
        cell = cell_named(self._view, expression, At(frame, lane))
        if cell is not None:
            return why_cell(self._view, cell)
        return last_write.why(self._view, expression, At(frame, lane), with_origins=with_origins)

    def export(self, expression: str, frame: int = 0, *, lane: int | None = None) -> Export:
        """Return the value of an expression as bytes that `replaydbg.load` reads. Raises UsageError, AskFailed."""
        self._view.work.begin(f"exporting {expression}")
        return export(self._view, expression, At(frame, lane))

    def watch(self, expression: str, frame: int = 0, *, lane: int | None = None) -> Breakpoint:
        """Stop, in both directions, where the value of a variable, an attribute or an item has changed.

        Raises UsageError if it cannot be followed.
        """
        cell = cell_named(self._view, expression, At(frame, lane))
        if cell is not None:
            return self._view.breakpoints.add(Breakpoint(0, place=expression, watch=cell.watch, cell=cell.steps))
        watched = last_write.watch_of(self._view, expression, At(frame, lane))
        return self._view.breakpoints.add(Breakpoint(0, place=expression, watch=watched))

    def history(self, expression: str, frame: int = 0, *, lane: int | None = None, most: int = 1000) -> ValueHistory:
        """Return the changes of a value over the whole run, from the first one; writes of an equal value do not count.

        They are found during iteration, which raises UsageError and AskFailed.
        """
        self._view.work.begin(f"tracking {expression}")
        return ValueHistory(self._view, expression, At(frame, lane), most)

    def bisect(
        self,
        predicate: Predicate,
        *,
        first: str | int | Moment | None = None,
        last: str | int | Moment | None = None,
        linear: bool = False,
        permanent: bool = False,
        only_at: str = "",
        report: Callable[[Probe], None] | None = None,
    ) -> Bisected:
        """Return the line after which `predicate` was first bad, between two moments (default: from start to failure).

        `linear` checks every line in order; `permanent` finds what stayed so to the end; `only_at` is the one place at
        which it is evaluated. `report` receives each probe. Raises UsageError, NoSuchMoment.
        """
        bisection = begin_bisection(self._view, predicate, first, last, report, only_at)
        return bisection.scan() if linear else bisection.permanent() if permanent else bisection.run()

    def log(self, file: str, line: int, expression: str, *, condition: str = "") -> Iterator[Logged]:
        """Yield what `expression` was each time that a line was about to run, over the whole run."""
        self._view.work.begin(f"logging {file}:{line}")
        return breakpoint_search.log(self._view, self._view.sources.file_named(file), line, expression, condition)

    def calls(self, first: int, last: int = 0, *, own: OwnCode | None = None) -> CallTree:
        """Return the calls of functions between two lines of the run, by their counts.

        `last` = 0: to the end of the function that is called at `first`. `own`: only calls of own code.
        """
        self._view.work.begin("collecting calls")
        return call_tree(self._view, first, last, own)

    def each_call(self, first: int = 1, last: int = 0, *, own: OwnCode | None = None) -> Calls:
        """Return each call of a function between two lines of the run, by their counts, up to MOST_CALLS.

        `last` = 0: to its end. `own`: only calls of own code.
        """
        self._view.work.begin("collecting calls")
        return calls_between(self._view, first, last or self._view.index.total, own)

    def passages(self, file: str, line: int, function: str = "", *, first: int = 1) -> Iterator[Moment]:
        """Yield each moment after the run's line `first` at which a line, or a function's first, was about to run."""
        view = self._view
        view.work.begin(f"searching for {function or f'{file}:{line}'}")
        return map(view.index.moment, breakpoint_search.passages(view, Break(file, line, function), first))
