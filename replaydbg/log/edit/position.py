"""Positions in a recording that is still being written. They are read long before one is cut."""

from __future__ import annotations

from replaydbg.classes import NamedTuple


class LogPosition(NamedTuple):
    """A position in a recording that is still being written."""

    log: int
    """The length of the event log up to there, in bytes."""
    world: int
    """The length of the import world."""
    events: int
    """Number of events up to there."""
    snapshots: int
    """Number of snapshots up to there."""
