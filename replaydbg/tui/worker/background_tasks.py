"""Background tasks: determine when each lane and each asyncio task ran, and where breakpoints are hit.

Each is a generator that yields after a little work: None, or its result.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from textual.message import Message

from replaydbg.debugger.calls.task_runs import TaskFollower, TaskRuns
from replaydbg.debugger.calls.thread_spans import MOST_ENTRIES, ThreadSpans, extend
from replaydbg.debugger.stops.counted_stops import counted_hits
from replaydbg.errors import Cancelled
from replaydbg.events.records import Control
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
    spans = ThreadSpans(session.index.starts, session.index.total // (4 * BINS))
    with open_recording(session.path) as recording:
        for number, entry in enumerate(recording.events()):
            if number % PORTION == PORTION - 1:
                yield None
            if number > MOST_ENTRIES:
                break
            if isinstance(entry, Control):
                spans.take(entry)
    yield LanesFound(tuple(LaneSpans(*each) for each in spans.finish(session.index.total)))


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
            extend(spans[task], first, last, gap)
    tasks = (
        TaskSpans(printable(each.name), each.lane, tuple(known), each.ended if each.is_done else total)
        for each, known in zip(runs.tasks, spans, strict=True)
    )
    return TaskTimes(tuple(tasks), runs.turns)
