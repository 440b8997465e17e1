"""The launcher's result of a recorded run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple


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
    snapshots: dict[str, Any] | None = None
    """The entry of `end.json` on the snapshots that were taken; None: there were none."""
