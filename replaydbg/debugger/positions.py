"""Positions and times of moments in one run."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from pathlib import Path

from replaydbg.debugger.marks import Marks
from replaydbg.debugger.moments import Position, parse_moment
from replaydbg.debugger.replay_view import ReplayView
from replaydbg.debugger.session_results import Moment
from replaydbg.errors import NoSuchMoment
from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording


class Positions:
    """Resolves moments to positions."""

    def __init__(self, view: ReplayView, path: Path, marks: Marks) -> None:
        """`path`: the recording, which has the clock marks."""
        self._view, self._path, self._marks = view, path, marks

    def of(self, moment: str | int | Moment) -> Position:
        """Return the position of a moment, or of a count of lines. Raises NoSuchMoment."""
        index = self._view.index
        if isinstance(moment, Moment):
            lines = index.lines_after(moment.event) if moment.event <= index.events else 0
            if moment.event > index.events or moment.step > max(lines, 1):
                raise NoSuchMoment(str(moment), f"the run ends before that, after {index.events:,} events")
            return Position(index.count(moment), moment.point)
        if isinstance(moment, str):
            marks = self._marks.counts_for(moment)
            return parse_moment(moment, index, marks, self._event_at, self._noted, self._view.failure)
        if not 1 <= moment <= index.total:
            raise NoSuchMoment(str(moment), f"the run has {index.total:,} lines")
        return Position(moment)

    def time_at(self, moment: Moment) -> float | None:
        """Return the seconds from the start to the last clock mark before `moment`; None before the first one."""
        events = min(moment.event, len(self._times))
        return self._times[events - 1] / 1e9 if events and self._times[events - 1] else None

    @cached_property
    def _times(self) -> list[int]:
        with open_recording(self._path) as recording:
            return [entry.time_ns for entry in recording.events(controls=False)]

    def _noted(self, kind: str, text: str) -> int:
        """Return the first event at which the program has noted `text`, else a text that contains it; 0: none."""
        containing = 0
        with open_recording(self._path) as recording:
            for entry in recording.selected_events("replaydbg.moment".__eq__):
                noted = _noted_text(entry.outcome, kind) if isinstance(entry, Event) else ""
                if isinstance(entry, Event) and noted == text:
                    return entry.number
                if isinstance(entry, Event) and text in noted:
                    containing = containing or entry.number
        return containing

    def _event_at(self, nanoseconds: float) -> int:
        return bisect_right(self._times, nanoseconds)


def _noted_text(outcome: object, kind: str) -> str:
    """Return what `replaydbg.moment` has noted, if it is of this kind; anybody may have written the recording."""
    return str(outcome[2]) if isinstance(outcome, tuple) and len(outcome) == 3 and outcome[1] == kind else ""
