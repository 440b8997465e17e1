"""The moments of a recording from which futures can begin: before each event, and between switches of threads."""

from __future__ import annotations

from replaydbg.classes import NamedTuple
from replaydbg.events.records import Control, ControlKind, Event, SwitchReason
from replaydbg.log.reader import Recording


class LiveMoment(NamedTuple):
    """A moment from which futures can begin."""

    event: int
    """The first event that may differ."""
    switches: int
    """So many switches of threads have come since the event before it."""

    def __str__(self) -> str:
        if not self.switches:
            return f"event {self.event - 1:,}"
        return f"event {self.event - 1:,}, {self.switches:,} switch{'es' if self.switches > 1 else ''}"


class RecordedStep(NamedTuple):
    """What happened between a moment and the next one."""

    event: Event | None
    """None: a switch of threads."""
    lane: int
    """The thread of the event, or the one that gave way."""
    to: int
    """The thread that went on."""
    why: SwitchReason | None
    """Why the other one gave way."""


class RecordedMoments(NamedTuple):
    """The moments of a recording in their order, and what happened in between."""

    moments: list[LiveMoment]
    steps: list[RecordedStep]
    """After the moment with the same index. None follows the last one."""
    threads: dict[int, str]
    """The names of the threads, by their numbers."""


def moments_of(recording: Recording, first: int) -> RecordedMoments:
    """Return the moments from before event `first` on. Raises Corrupt."""
    moments: list[LiveMoment] = []
    steps: list[RecordedStep] = []
    threads = {0: "MainThread"}
    switches = 0
    for entry in recording.events():
        if isinstance(entry, Control) and entry.kind is ControlKind.LANE_STARTED and entry.number is not None:
            threads[entry.number] = entry.name or f"thread {entry.number}"
        is_switch = isinstance(entry, Control) and entry.kind is ControlKind.LANE
        if isinstance(entry, Control):
            event = entry.after + 1
        else:
            event = entry.number
        if event < first or not (is_switch or isinstance(entry, Event)):
            continue
        if not moments or moments[-1].event != event:
            switches = 0
        moments.append(LiveMoment(event, switches))
        if isinstance(entry, Event):
            steps.append(RecordedStep(entry, entry.lane, entry.lane, None))
            continue
        steps.append(RecordedStep(None, entry.lane, entry.number or 0, entry.why))
        switches += 1
    return RecordedMoments(moments, steps, threads)
