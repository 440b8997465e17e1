"""The launcher's result of a recorded run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from replaydbg.classes import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.log.group import Group
    from replaydbg.log.json_data import NoteData, SnapshotsData


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
    notes: list[NoteData]
    """Notes on what cannot be recorded."""
    reason: str | None
    """Why logging stopped before the program ended, if it did."""
    problem: str | None
    """Why the recording could not be sealed, if it could not."""
    snapshots: SnapshotsData | None = None
    """The entry of `end.json` on the snapshots that were taken; None: there were none."""
    group: Group | None = None
    """The processes that were recorded together; None: only one was to be recorded."""
    not_recorded: Mapping[str, int] = {}
    """Why processes that it started are not recorded, each with their number."""
    is_dropped: bool = False
    """Whether it was removed because nothing had failed, see `record`."""
    has_failed_request: bool = False
    """Whether a request failed in one of the processes; only with `stands_in`, see `record`."""
