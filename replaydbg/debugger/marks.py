"""Named moments."""

from __future__ import annotations

from collections.abc import Iterator

from replaydbg.debugger.first_pass.recorded_test import Named, Test
from replaydbg.debugger.memory_queries import HeapQueries
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import Moment
from replaydbg.engine.protocol import Break, RunOrder
from replaydbg.engine.reports import EndReport
from replaydbg.errors import UsageError

_TAKEN = ("start", "end", "last", "exc")
_NAMING = "mark_called"
"""The function by whose calls a test names its moments."""
_NAMING_FILES = ("/replaydbg/pytest_plugin/child/recorded.py", "/replaydbg/pytest_plugin/recorded.py")
"""Its file, now and in earlier recordings."""


class Marks:
    """The named moments of a run."""

    def __init__(self, view: ReplayView, heap: HeapQueries) -> None:
        """`heap` knows the snapshots, which have names as well."""
        self._view, self._heap = view, heap
        self._marks: dict[str, int] = {}
        self._unsettled: dict[str, int] = {}
        """Those of a test of which only the last event before them is known until they are asked for."""
        self._called: tuple[Named, ...] = ()
        self._of_test: set[str] = set()
        """The names that `take_from` has added, and that of the failure."""

    def add(self, name: str, moment: Moment | None = None) -> Moment:
        """Give a moment, or this one, a name: `@name`. Raises UsageError for a name that means something else."""
        if not name.isidentifier() or name in _TAKEN:
            raise UsageError(f"{name!r} cannot name a moment: use letters, digits and _ (not start, end, last, exc).")
        self._marks[name] = self._view.here.count if moment is None else self._view.index.count(moment)
        self._unsettled.pop(name, None)
        return self._view.index.moment(self._marks[name])

    def remove(self, name: str) -> None:
        """Forget a name. Raises UsageError if there is none."""
        if name not in self._marks:
            raise UsageError(f"No such mark: @{name}.")
        del self._marks[name]
        self._unsettled.pop(name, None)

    @property
    def moments(self) -> dict[str, Moment]:
        """The named moments, snapshots excepted."""
        self._settle()
        return {name: self._view.index.moment(count) for name, count in sorted(self._marks.items())}

    def counts_for(self, moment: str) -> dict[str, int]:
        """Return the counts of lines at the named moments, snapshots included, if `moment` may be one of them."""
        if any(name in moment for name in self._unsettled):
            self._settle()
        return self._marks | self._heap.counts_of_snapshots(moment)

    def take_from(self, test: Test) -> None:
        """Take the moments that a test named, in place of those of another test."""
        found = test.marks_in(self._view.index)
        for name in self._of_test:
            self._marks.pop(name, None)
        self._of_test = {*found, "failure"}
        self._marks |= found
        self._called = tuple(each for each in test.marks if each.is_called)
        self._unsettled = {each.name: found[each.name] for each in self._called}

    def take_over(self, other: Marks) -> None:
        """Replace all by those of another session of the same recording."""
        self._marks = dict(other._marks)

    def name_failure(self, count: int) -> None:
        """Name the line at which a test failed."""
        self._marks["failure"] = count

    def _settle(self) -> None:
        """Find the lines from which the test named its moments: the recording knows only after which events it did."""
        if not self._unsettled:
            return
        calls = list(self._calls_that_name())
        for each in reversed(self._called):
            while calls and calls[-1][0] > each.event:
                calls.pop()
            if calls and calls[-1][0] == each.event:
                _, count = calls.pop()
                known = self._unsettled.pop(each.name, None)
                # Of several with one name the last one counts; a name given since then stays.
                if known is not None and self._marks.get(each.name) == known:
                    self._marks[each.name] = count
        self._unsettled.clear()

    def _calls_that_name(self) -> Iterator[tuple[int, int]]:
        """Yield the number of events before each call that names a moment, and the count of the line that makes it."""
        hits = self._view.index.hits
        file = next((each.file for each in hits if each.file.endswith(_NAMING_FILES) and each.function == _NAMING), "")
        if not file:
            return
        events = [min(each.event, self._view.index.events) for each in self._called]
        first = self._view.index.count(Moment(events[0], 1))
        last = self._view.index.count(Moment(events[-1], self._view.index.lines_after(events[-1])))
        worker, idle = self._view.travel.at(first), self._view.travel.idle
        order = RunOrder(until=last, breaks=(Break(file=file, function=_NAMING),))
        try:
            while not isinstance(where := worker.run(order, idle=idle), EndReport) and where.why == "break":
                callers = [each.last for each in where.stack[1:] if each.file != file and each.last]
                yield where.event, callers[0] if callers else where.count
        finally:
            worker.kill()
