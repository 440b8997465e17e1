"""The schedule that a future is given, in the form in which the core reads it (native/lanes/schedules.c)."""

from __future__ import annotations

import struct
from enum import IntEnum

from replaydbg.classes import NamedTuple, dataclass

_HEAD = struct.Struct("=IIQ")
_STEP = struct.Struct("=IIQQII")
_TRACES, _NOTES_POINTS, _NAMES_PLAIN = 1, 2, 4


class DeviationKind(IntEnum):
    """In what a schedule deviates from the usual one."""

    PREEMPTION = 0
    """A thread gives way that could go on."""
    CHOICE = 1
    """Where a thread waits or ends, another one goes on than the first of those that can run."""
    ORDER = 2
    """What became ready at once is reported in another order."""
    PAUSE = 3
    """An event loop looks later for what is ready."""


class Deviation(NamedTuple):
    """One deviation. Its place is that of a thread, however others are scheduled."""

    kind: DeviationKind
    lane: int
    """The number of the thread."""
    marks: int
    """How many events and thread starts of its own it has behind it in the future."""
    ticks: int
    """Its ticks since the last of these."""
    value: int
    """The number of the thread that goes on; of an order, its number (0: the usual one); of a pause, microseconds."""


class ScheduleKind(IntEnum):
    """Where a schedule comes from."""

    RANDOM = 0
    """It is drawn from the seed."""
    DEVIATIONS = 1
    """It is the usual one but for given deviations. In the usual schedule a thread runs until it waits, or for 5 ms of
    simulated time, and of those that can run the one that has waited longest goes on.
    """
    PRIORITIES = 2
    """The thread with the highest priority runs, drawn from the seed; at given lines that of the running one drops."""


@dataclass(frozen=True, slots=True)
class FutureSchedule:
    """A schedule that a future is given."""

    kind: ScheduleKind = ScheduleKind.RANDOM
    deviations: tuple[Deviation, ...] = ()
    changes: tuple[int, ...] = ()
    """With priorities: after how many lines at which another thread could run one changes."""
    traces: bool = False
    """Whether the decisions are reported."""
    notes_points: bool = False
    """Whether, after the last deviation, each line is reported at which a thread could be preempted."""
    names_plain: bool = False
    """Whether these reports name the variables with plain values: they take ten times as much room then."""

    def encoded(self) -> bytes:
        """Return it as the core reads it."""
        flags = (_TRACES if self.traces else 0) | (_NOTES_POINTS if self.notes_points else 0)
        flags |= _NAMES_PLAIN if self.names_plain else 0
        steps = [_STEP.pack(each.kind, each.lane, each.marks, each.ticks, each.value, 0) for each in self.deviations]
        steps += [_STEP.pack(0, 0, 0, ticks, 0, 0) for ticks in self.changes]
        return _HEAD.pack(self.kind, flags, len(steps)) + b"".join(steps)


def with_deviations(
    deviations: tuple[Deviation, ...], *, traces: bool = False, notes_points: bool = False
) -> FutureSchedule:
    """Return the usual schedule but for these."""
    return FutureSchedule(ScheduleKind.DEVIATIONS, deviations, traces=traces, notes_points=notes_points)


TRACED = FutureSchedule(traces=True)
"""A random schedule whose decisions are reported."""
