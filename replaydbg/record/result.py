"""The launcher's result of a recorded run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, TypedDict


class CheckedInvariant(TypedDict):
    """The result of an invariant at one snapshot."""

    name: str
    holds: bool | None
    """None: it could not be evaluated."""
    text: str
    """Why it does not hold, or why it could not be evaluated; empty if that is not known."""


class ListedSnapshot(TypedDict):
    """One snapshot in `end.json`."""

    number: int
    event: int
    name: str
    reason: str
    time_ns: int
    objects: int
    bytes: int
    is_cut: bool
    checks: list[CheckedInvariant]


class SnapshotsEntry(TypedDict):
    """The entry of `end.json` on the snapshots that were taken."""

    listed: list[ListedSnapshot]
    failed: int
    left_out: int
    """Number of snapshots that were skipped, because they would have slowed the run too much."""
    pause_ns: int
    longest_pause_ns: int
    copies_ns: int


class RecordResult(NamedTuple):
    """The result of recording a run."""

    path: Path
    """The sealed recording (the live directory if sealing failed)."""
    status: int
    """The program's exit code, or minus the number of the signal that ended it."""
    events: int
    """Number of recorded crossings."""
    size: int
    """Size of the recording in bytes."""
    notes: list[dict[str, Any]]
    """Notes on what cannot be recorded: `kind`, `text`, `count`."""
    reason: str | None
    """Why logging stopped before the program ended, if it did."""
    problem: str | None
    """Why the recording could not be sealed, if it could not."""
    snapshots: SnapshotsEntry | None = None
    """The snapshots that were taken; None: there were none."""
