"""The plan of a resumption: what is reopened, lost and refused, and what is done with the calls in flight."""

from __future__ import annotations

from replaydbg.classes import dataclass
from replaydbg.resources.kinds import Resources
from replaydbg.resume.checks.changed_sources import ChangedSource
from replaydbg.resume.checks.continuations import Continuation
from replaydbg.resume.findings import Finding
from replaydbg.resume.past import Past
from replaydbg.resume.plan_rows import Fate, PlanRow
from replaydbg.resume.power_loss.recovered_files import Leftover

_READING, _REPLAY = 3.0e-6, 0.14e-6
"""Seconds that reading an event is assumed to take (measured: 0.5 to 13 µs), and that a replay takes at least."""

_RESTORE, _RESTORE_BYTE = 0.3, 2.0e-9
"""Seconds that bringing back an image is assumed to take, and for each byte of it, with its digest."""


@dataclass(frozen=True, slots=True)
class PlannedImage:
    """An image of a standby."""

    path: str
    """Its directory."""
    event: int | None
    """The last event that it has replayed; None: its description cannot be read."""
    size: int
    """In bytes; 0 if its description cannot be read."""
    unfit: str
    """Why it cannot be used, as a clause; empty: it can."""


@dataclass(frozen=True, slots=True)
class RecoveryCost:
    """The work that a resumption repeats before the program goes live."""

    events: int
    cpu_ms: int
    """CPU time of the recorded program for them, in milliseconds; 0: unknown."""
    log_bytes: int
    """Size of the event log."""
    saved_events: int = 0
    """Of these, the events that an image of a standby has already."""
    saved_cpu_ms: int = 0
    """The CPU time for them."""
    image_bytes: int = 0
    """The size of that image; 0: there is none."""

    @property
    def events_left(self) -> int:
        """The events that are replayed."""
        return self.events - self.saved_events

    @property
    def cpu_ms_left(self) -> int:
        """The CPU time of the recorded program for them, in milliseconds; 0: unknown."""
        return max(self.cpu_ms - self.saved_cpu_ms, 0)

    @property
    def seconds(self) -> float:
        """The expected time until the program is live."""
        return self.reading_seconds + self.replay_seconds + self.restore_seconds

    @property
    def reading_seconds(self) -> float:
        """The expected time in which the launcher reads the log."""
        return self.events * _READING

    @property
    def replay_seconds(self) -> float:
        """The expected time of the replay, on a processor of its own."""
        return max(self.cpu_ms_left / 1000, self.events_left * _REPLAY)

    @property
    def restore_seconds(self) -> float:
        """The expected time in which the image is checked and brought back."""
        return _RESTORE + self.image_bytes * _RESTORE_BYTE if self.image_bytes else 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan for a program at the moment from which it goes live."""

    name: str
    """The recording's name in commands."""
    event: int
    """The last event that is replayed."""
    resources: Resources
    past: Past
    rows: tuple[PlanRow, ...]
    """The fate of each resource."""
    differences: tuple[str, ...]
    """How files differ on the disk from what was recorded."""
    stood_ns: int
    """For how long the program stood still: nanoseconds since its last event."""
    recovery: RecoveryCost
    """How much is replayed."""
    thread: int | None = None
    """The thread that goes on, at a call; None: it is not known, or at none."""
    in_flight: tuple[Finding, ...] = ()
    """The calls in flight, with what is done."""
    leftovers: tuple[Leftover, ...] = ()
    """After a power cut: what files have after their recorded ends, and is cut off."""
    may_have_lost_power: bool = False
    """Whether a power cut can explain why files differ: it was recorded with --durable, and none was said."""
    sources: tuple[ChangedSource, ...] = ()
    """The source files that have changed since the program loaded them."""
    continuation: Continuation | None = None
    """The newest recording in which the program was already resumed; None: it was not."""

    stopped: str = ""
    """Why logging stopped before the program ended, as a clause; empty: it did not."""
    images: tuple[PlannedImage, ...] | None = None
    """The images of a standby, the newest first; None: none were asked for."""

    @property
    def refused(self) -> tuple[PlanRow, ...]:
        """The rows of what no rule can bring back."""
        return tuple(row for row in self.rows if row.fate is Fate.REFUSED)

    def thread_name(self, number: int) -> str:
        """Return the name of a thread; empty if it has none."""
        return next((each.name for each in self.resources.threads if each.lane == number), "")
