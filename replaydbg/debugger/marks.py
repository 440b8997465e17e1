"""The moments that somebody gave a name."""

from __future__ import annotations

from collections.abc import Iterator

from replaydbg.debugger.heaps import Heaps
from replaydbg.debugger.testing import Named, Test
from replaydbg.debugger.values import Moment
from replaydbg.engine.messages import Break, Run
from replaydbg.errors import UsageError

_TAKEN = ("start", "end", "last", "exc")
_NAMING = ("/replaydbg/pytest_plugin/recorded.py", "mark_called")
"""The file and the function by whose calls a test names its moments."""


class Marks(Heaps):
    """What a session has for named moments."""

    def __init__(self) -> None:
        super().__init__()
        self._marks: dict[str, int] = {}
        self._unsettled: dict[str, int] = {}
        """Those of a test of which only the last event before them is known, until somebody asks."""
        self._called: tuple[Named, ...] = ()

    def mark(self, name: str, moment: Moment | None = None) -> Moment:
        """Give a moment, or this one, a name: `@name`. Raises UsageError for a name that means something else."""
        if not name.isidentifier() or name in _TAKEN:
            raise UsageError(f"{name!r} cannot name a moment: letters, digits and _, and not start, end, last or exc.")
        self._marks[name] = self.here.count if moment is None else self.index.count(moment)
        self._unsettled.pop(name, None)
        return self.index.moment(self._marks[name])

    def remove_mark(self, name: str) -> None:
        """Forget a name. Raises UsageError if there is none."""
        if name not in self._marks:
            raise UsageError(f"There is no mark @{name}.")
        del self._marks[name]
        self._unsettled.pop(name, None)

    @property
    def marks(self) -> dict[str, Moment]:
        """The named moments."""
        self._settle()
        return {name: self.index.moment(count) for name, count in sorted(self._marks.items())}

    def marks_for(self, moment: str) -> dict[str, int]:
        """Return the counts of lines at the named moments, snapshots included, if `moment` may be one of them."""
        if any(name in moment for name in self._unsettled):
            self._settle()
        return self._marks | self.marks_of_snapshots(moment)

    def _take_marks(self, test: Test) -> None:
        """Take the moments that a test named."""
        found = test.marks_in(self.index)
        self._marks |= found
        self._called = tuple(each for each in test.marks if each.is_called)
        self._unsettled = {each.name: found[each.name] for each in self._called}

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
                # Of several of a name it is the last one; what somebody named so since then stays.
                if known is not None and self._marks.get(each.name) == known:
                    self._marks[each.name] = count
        self._unsettled.clear()

    def _calls_that_name(self) -> Iterator[tuple[int, int]]:
        """Yield the number of events before each call that names a moment, and the count of the line that makes it."""
        tail, function = _NAMING
        file = next(
            (each.file for each in self.index.hits if each.file.endswith(tail) and each.function == function), ""
        )
        if not file:
            return
        events = [min(each.event, self.index.events) for each in self._called]
        first = self.index.count(Moment(events[0], 1))
        last = self.index.count(Moment(events[-1], self.index.lines_after(events[-1])))
        worker = self.travel.at(first)
        order = Run(until=last, breaks=(Break(file=file, function=function),))
        try:
            while not isinstance(where := worker.run(order, idle=self.travel.idle), dict) and where.why == "break":
                callers = [each.last for each in where.stack[1:] if each.file != file and each.last]
                yield where.event, callers[0] if callers else where.count
        finally:
            worker.kill()
