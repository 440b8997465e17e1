"""Record a program repeatedly, its threads interleaved in another way each time, until it fails."""

from __future__ import annotations

from pathlib import Path

from replaydbg.classes import NamedTuple
from replaydbg.config import Settings
from replaydbg.errors import UsageError
from replaydbg.record.launcher import record
from replaydbg.record.result import RecordResult


class FailedRecord(NamedTuple):
    """The first recorded run that failed."""

    result: RecordResult
    seed: int
    run: int
    """Its number, from 1."""


def record_until_failure(
    argv: list[str], runs: int, *, output: Path | None = None, settings: Settings
) -> FailedRecord | None:
    """Record `argv` up to `runs` times, with the seeds from `settings.chaos` (or 0) on; see `record` for the rest.

    The first run that ends with another exit code than 0, by a signal or in a deadlock is kept and returned; None if
    there was none. Raises what `record` raises, and UsageError if `runs` is not at least 1.
    """
    if runs < 1:
        raise UsageError("--chaos-runs must be at least 1.")
    first = settings.chaos or 0
    for seed in range(first, first + runs):
        # Nobody would be there to end a run that hangs.
        chosen = settings._replace(chaos=seed, on_deadlock="stop")
        result = record(argv, output=output, settings=chosen, follows_activated=True)
        if result.status != 0:
            return FailedRecord(result, seed, seed - first + 1)
        result.path.unlink(missing_ok=True)
    return None
