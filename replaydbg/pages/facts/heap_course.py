"""How the heap grew: over the snapshots in the recording, or over some that the replay takes."""

from __future__ import annotations

from replaydbg.debugger import Session
from replaydbg.heap.retention.growth import FEWEST, Growth, growth
from replaydbg.heap.retention.holding import Holding
from replaydbg.heap.snapshot import Snapshot
from replaydbg.heap.storage.recorded_snapshots import load_series
from replaydbg.log.reader import open_recording
from replaydbg.pages.facts.page_facts import HeapCourse, HeapPoint, Instant
from replaydbg.render import texts

TAKEN = 6
"""Number of snapshots that are taken in a replay."""
MOST_LINES = 5_000_000
"""Lines of a run up to which they are: it has to be run again as a whole."""
MOST_ROWS = 8


def heap_course(session: Session, first: int, last: int) -> HeapCourse | None:
    """Return the course between two lines of the run; None: there is nothing to compare. Raises Corrupt, EngineLost."""
    notes: list[str] = []
    if len(session.heap.taken) > 1:
        with open_recording(session.path) as recording:
            snapshots = load_series(recording, notes.append)
        known = session.heap.counts_of_snapshots("@#")
        counts = [known.get(f"#{each.taken.number}", 1) for each in snapshots]
        note = "The snapshots were taken while the program was recorded."
    elif session.test is not None or session.index.total > MOST_LINES or last - first < TAKEN:
        # The heap of a test is that of pytest and all that it has collected.
        return None
    else:
        counts = sorted({first + (last - first) * each // (TAKEN - 1) for each in range(TAKEN)})
        snapshots = session.heap.at_each(counts)
        note = f"The {len(snapshots)} snapshots were taken in a replay; they have what the program's own modules reach."
    held = [Holding(each) for each in snapshots]
    found = growth(held)
    points = tuple(_point(session, count, each) for count, each in zip(counts, snapshots, strict=True))
    verdict = found.verdict if len(snapshots) >= FEWEST else f"There are {len(snapshots)} snapshots."
    return HeapCourse(points, verdict, tuple(_rows(found)), " ".join([note, *notes]))


def _point(session: Session, count: int, snapshot: Snapshot) -> HeapPoint:
    instant = Instant(texts.moment_text(session.index.moment(count)), count)
    return HeapPoint(instant, len(snapshot), sum(snapshot.size))


def _rows(found: Growth) -> list[tuple[str, str, tuple[int, ...], tuple[int, ...]]]:
    """Return containers that grew, and types with more objects."""
    containers = [(each.path, each.type, each.items, each.retained) for each in found.containers[:MOST_ROWS]]
    types = [("", each.type, each.counts, each.bytes) for each in found.types[:MOST_ROWS]]
    return containers + types
