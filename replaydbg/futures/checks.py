"""Whether a recording can have futures, and whether what is wanted of them makes sense."""

from __future__ import annotations

from replaydbg.errors import CannotResume, NoFutures, NoSuchMoment, UsageError
from replaydbg.log.reader import Recording
from replaydbg.resume.preparation import check_alone, check_running

_OF_SEVERAL = "it is one process of a group: name the whole group, without /N"


def check_numbers(count: int, jobs: int | None, seed: int, timeout: float) -> None:
    """Raise UsageError if there can be no such futures."""
    if count < 1:
        raise UsageError(f"N must be at least 1 (got {count})")
    if jobs is not None and jobs < 1:
        raise UsageError(f"--jobs must be at least 1 (got {jobs})")
    if seed < 0 or seed + count > 1 << 63:
        raise UsageError(f"--seed must be from 0 to 2**63 - N (got {seed})")
    if not 0 < timeout < float("inf"):
        raise UsageError(f"--timeout must be a number of seconds above 0 (got {timeout:g})")


def check_member(recording: Recording, name: str) -> None:
    """Raise NoFutures if a process of a group, called `name` in commands, can have none."""
    try:
        check_running(recording, name)
    except CannotResume as error:
        raise NoFutures(name, error.reason) from None
    if recording.header.durable:
        raise NoFutures(name, "it was made with --durable, whose log no future can continue")


def check_recording(recording: Recording, name: str, event: int) -> None:
    """Raise NoFutures or NoSuchMoment if the recording, called `name` in commands, can have none before `event`."""
    try:
        check_alone(recording, name)
    except CannotResume:
        raise NoFutures(name, _OF_SEVERAL) from None
    check_member(recording, name)
    events = recording.log_header.crossings if recording.log_header is not None else 0
    if event > events:
        raise NoSuchMoment(str(event), f"the recording has {events:,} events")
