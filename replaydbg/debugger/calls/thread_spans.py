"""When each thread ran, from the log of a recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from replaydbg.events.records import Control, ControlKind, SwitchReason
from replaydbg.events.show import printable

LINES_PER_TICK = 1.25
"""An estimate, needed only where ticks were not counted from an event on."""

MOST_ENTRIES = 2_000_000
"""Number of log entries up to which threads are followed."""


class ThreadRuns(NamedTuple):
    """The times at which a thread ran."""

    lane: int
    """Its number."""
    name: str
    """Its name, printable; empty if it has none."""
    spans: tuple[tuple[int, int], ...]
    """Ranges of line counts, from and to."""


def extend(spans: list[tuple[int, int]], first: int, last: int, gap: int) -> None:
    """Add a stretch; those with no larger distance than `gap` are merged: nobody would see the difference."""
    if spans and first - spans[-1][1] <= gap:
        spans[-1] = (spans[-1][0], max(last, spans[-1][1]))
    else:
        spans.append((first, last))


class ThreadSpans:
    """Switches of threads as stretches of lines.

    The log has a lane's progress between two events in ticks, not in lines: the lines between two events are divided in
    proportion to the ticks, and the last lane's share before the next event is assumed to be average.
    """

    def __init__(self, starts: Sequence[int], gap: int) -> None:
        """`gap`: stretches with no larger distance are merged."""
        self._starts, self._gap = starts, gap
        self._names: dict[int, str] = {0: "main"}
        self._spans: dict[int, list[tuple[int, int]]] = {}
        self._lane, self._since = 0, 1
        self._event = 0
        self._alive = 1
        self._counted_from = -1
        """The event from which on ticks were counted, because there was a second lane."""
        self._between: list[tuple[int, int]] = []
        """The switches since the last event: the next lane, with the ticks of the lane before."""

    def take(self, entry: Control) -> None:
        """Process the next entry."""
        if entry.kind is ControlKind.LANE_STARTED and entry.number is not None:
            self._names[entry.number] = printable(entry.name or "")
            self._alive += 1
            if self._alive == 2:
                self._counted_from = entry.after
        elif entry.kind is ControlKind.LANE and entry.number is not None:
            if entry.after != self._event:
                self._share_out()
                self._event = entry.after
            self._between.append((entry.number, entry.ticks or 0))
            self._alive -= entry.why is SwitchReason.ENDED

    def finish(self, total: int) -> tuple[ThreadRuns, ...]:
        """Return the stretches of each thread; `total`: the number of lines of the run."""
        self._share_out()
        self._ends(total)
        return tuple(
            ThreadRuns(each, self._names.get(each, ""), tuple(self._spans[each])) for each in sorted(self._spans)
        )

    def _share_out(self) -> None:
        if not self._between:
            return
        starts, event = self._starts, self._event
        first = starts[min(event, len(starts) - 1)]
        lines = starts[min(event + 1, len(starts) - 1)] - first
        ticks = [each for _, each in self._between]
        # If the lane waited inside a crossing the switch comes with the event itself.
        whole = sum(ticks) + sum(ticks) // len(ticks)
        if event == self._counted_from:
            # The part without counted ticks came first.
            counted = min(round(whole * LINES_PER_TICK), lines)
            first, lines = first + lines - counted, counted
        done = 0
        for lane, each in self._between:
            done += each
            at = first + (lines * done // whole if whole else lines)
            self._ends(at)
            self._lane, self._since = lane, max(at, self._since)
        self._between = []

    def _ends(self, count: int) -> None:
        if count <= self._since:
            return
        extend(self._spans.setdefault(self._lane, []), self._since, count, self._gap)
