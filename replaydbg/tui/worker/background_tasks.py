"""Background tasks: determine when each lane and each asyncio task ran, and where breakpoints are hit.

Each is a generator that yields after a little work: None, or its result.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

from textual.message import Message

from replaydbg.debugger.calls.task_runs import TaskFollower, TaskRuns
from replaydbg.debugger.stops.counted_stops import counted_hits
from replaydbg.errors import Cancelled
from replaydbg.events.records import Control, ControlKind, SwitchReason
from replaydbg.events.show import printable
from replaydbg.log.reader import open_recording
from replaydbg.tui.ui_messages import LanesFound, SnapshotsFound, TasksFound, TrackFound
from replaydbg.tui.view_model import LaneSpans, TaskSpans, TaskTimes, TimelineMark, Track
from replaydbg.tui.worker.run_overview import BINS, snapshot_text

if TYPE_CHECKING:
    from replaydbg.debugger import Session
    from replaydbg.debugger.session_results import Breakpoint

PORTION = 500
"""Number of log entries that are read between two checks for a waiting request."""

LINES_PER_TICK = 1.25
"""An estimate, needed only where ticks were not counted from an event on."""

MOST_ENTRIES = 2_000_000
"""Number of log entries up to which the lanes are determined."""

MOST_HITS = 1000
"""Maximum number of hits of a breakpoint that are shown."""


def no_hits(number: int) -> Generator[Message | None]:
    """Remove the row of a breakpoint."""
    yield TrackFound(Track(f"break {number}", "", ()))


def hits(session: Session, point: Breakpoint) -> Generator[Message | None]:
    """Find the hits of a breakpoint; its condition is not evaluated."""
    if not point.is_of_lines or point.temporary:
        return
    if point.hits:
        session.work.begin("counting the hits of a breakpoint")
        counted = counted_hits(session, point)
        marks = [TimelineMark(each.count) for each in counted[:MOST_HITS]]
        yield TrackFound(Track(f"break {point.number}", f"b {point.number}", tuple(marks), len(counted) > MOST_HITS))
        return
    marks = []
    more = 0
    for moment in session.run.passages(point.file, point.line, point.function):
        if len(marks) == MOST_HITS:
            more = 1
            break
        marks.append(TimelineMark(session.index.count(moment)))
        if len(marks) % 20 == 0:
            yield None
    yield TrackFound(Track(f"break {point.number}", f"b {point.number}", tuple(marks), more))


def snapshots(session: Session) -> Generator[Message | None]:
    """Find the lines at which the program requested snapshots: the recording has only the events before them."""
    if not any(each.reason == "named" for each in session.heap.taken):
        return
    session.work.begin("searching for snapshots")
    counts = session.heap.counts_of_snapshots("@#")
    found = (TimelineMark(counts[f"#{each.number}"], snapshot_text(each)) for each in session.heap.taken)
    yield SnapshotsFound(tuple(sorted(found, key=lambda each: each.count)))


def lane_spans(session: Session) -> Generator[Message | None]:
    """Find when each lane ran, from the log; yield now and then, and the result at the end."""
    spans = _Spans(session.index.starts, session.index.total // (4 * BINS))
    with open_recording(session.path) as recording:
        for number, entry in enumerate(recording.events()):
            if number % PORTION == PORTION - 1:
                yield None
            if number > MOST_ENTRIES:
                break
            if isinstance(entry, Control):
                spans.take(entry)
    yield LanesFound(spans.finish(session.index.total))


def task_times(session: Session, follower: TaskFollower) -> Generator[Message | None]:
    """Find when each asyncio task ran. It goes on after a request of the user where it was interrupted."""
    while True:
        session.work.begin("searching for tasks")
        try:
            for found in follower.steps():
                yield TasksFound(_times(found, session.index.total)) if found is not None else None
        except Cancelled:
            yield None
        else:
            return


def _times(runs: TaskRuns, total: int) -> TaskTimes:
    gap = total // (4 * BINS)
    spans: list[list[tuple[int, int]]] = [[] for _ in runs.tasks]
    for turns in runs.turns.values():
        for first, last, task in turns:
            _extend(spans[task], first, last, gap)
    tasks = (
        TaskSpans(printable(each.name), each.lane, tuple(known), each.ended if each.is_done else total)
        for each, known in zip(runs.tasks, spans, strict=True)
    )
    return TaskTimes(tuple(tasks), runs.turns)


def _extend(spans: list[tuple[int, int]], first: int, last: int, gap: int) -> None:
    """Add a stretch; those with no larger distance than `gap` are merged: nobody would see the difference."""
    if spans and first - spans[-1][1] <= gap:
        spans[-1] = (spans[-1][0], max(last, spans[-1][1]))
    else:
        spans.append((first, last))


class _Spans:
    """Switches of lanes as stretches of lines.

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

    def finish(self, total: int) -> tuple[LaneSpans, ...]:
        """Return the stretches of each lane."""
        self._share_out()
        self._ends(total)
        return tuple(
            LaneSpans(each, self._names.get(each, ""), tuple(self._spans[each])) for each in sorted(self._spans)
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
        _extend(self._spans.setdefault(self._lane, []), self._since, count, self._gap)
