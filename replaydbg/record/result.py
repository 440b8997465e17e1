"""What the launcher knows of a run when it has been recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple


class RecordResult(NamedTuple):
    """What came of recording a run."""

    path: Path
    """The sealed recording (the live directory where sealing failed)."""
    status: int
    """The program's exit code, or minus the number of the signal that ended it."""
    events: int
    """How many crossings were recorded."""
    size: int
    """Size of the recording in bytes."""
    notes: list[dict[str, Any]]
    """What was met that cannot be recorded: `kind`, `text`, `count`."""
    reason: str | None
    """Why logging stopped before the program ended, if it did."""
    problem: str | None
    """Why the recording could not be sealed, if so."""
    snapshots: dict[str, Any] | None = None
    """What `end.json` says of the snapshots that were taken; None: none were."""
