"""Limits on a replay's CPU time without consuming a record, and on its waiting: the recorded time, with a margin."""

from __future__ import annotations

from replaydbg.classes import NamedTuple
from replaydbg.replay.result import ended_by_itself

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from replaydbg.log.reader import Recording

AFTER_FACTOR, AFTER_FACTOR_BY_LINES, AFTER_LEAST = 2.0, 3.0, 0.5
"""For a program that was killed while it computed: a replay may be slower, and one that traces each line is.

The last value is in seconds, for very short computations.
"""

BETWEEN_FACTOR, BETWEEN_FACTOR_BY_LINES, BETWEEN_LEAST = 20.0, 100.0, 30.0
"""Between two records. Only an endless loop comes near it."""

IDLE_LEAST, IDLE_MOST = 60.0, 600.0
"""Seconds that a replay may wait without using the processor.

Only native code waits in a replay, and as long as when it was recorded. At most the second value: the recording claims
its time, and may be of an attacker.
"""

UNKNOWN = 5.0
"""Seconds, for a recording without the program's CPU time."""


class CpuLimits(NamedTuple):
    """Seconds of CPU time."""

    after: float
    """After the last record; 0: the program ended by itself, and the replay does, too."""
    between: float
    """Before the last record."""

    def as_boot(self) -> dict[str, int]:
        """Return the limits for the core, in milliseconds."""
        return {"cpu_after": int(self.after * 1000), "cpu_between": int(self.between * 1000)}


def cpu_limits(recording: Recording, *, is_cut: bool, by_lines: bool) -> CpuLimits:
    """Return the limits of a replay; `by_lines`: it traces each line, `is_cut`: a part of the log is missing."""
    after, between = _recorded(recording)
    factors = (AFTER_FACTOR_BY_LINES, BETWEEN_FACTOR_BY_LINES) if by_lines else (AFTER_FACTOR, BETWEEN_FACTOR)
    ends = ended_by_itself(recording) and not is_cut
    return CpuLimits(
        after=0.0 if ends else factors[0] * after + AFTER_LEAST,
        between=factors[1] * max(after, between) + BETWEEN_LEAST,
    )


def idle_limit(recording: Recording) -> float:
    """Return how many seconds a replay may wait without using the processor."""
    end = recording.end
    return min(IDLE_LEAST + (end.seconds if end is not None else IDLE_MOST), IDLE_MOST)


def computed_after_log(recording: Recording) -> float:
    """Return for how many seconds of CPU time the program computed after its last record; 0: it is not known."""
    return _recorded(recording)[0] if recording.end is not None else 0.0


def _recorded(recording: Recording) -> tuple[float, float]:
    """Return the program's CPU time after its last record, and its maximum between two records."""
    end, log = recording.end, recording.log_header
    if end is not None:
        # A recording by an earlier version only has the time of the whole run.
        total = max(end.cpu_seconds, end.seconds)
        return _seconds(end.raw, "cpu_after", total), _seconds(end.raw, "cpu_between", total)
    if log is not None and log.last_ns:
        # Its recorder was killed, too: the time of the program's end is unknown.
        total = log.cpu_ms / 1000
        return max(total, 1.0), max(log.longest_ms / 1000, 1.0)
    return UNKNOWN, UNKNOWN


def _seconds(end: Any, name: str, default: float) -> float:
    value = end.get(name)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    # As milliseconds the seconds fit into the core's numbers.
    return min(max(float(value if is_number else default), 0.0), 1e5)
