"""Snapshots of replays, which have the secrets of a recording again, as they are stored in it: masked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from replaydbg.heap.snapshot import Snapshot, Strings
from replaydbg.log.hidden import masked_like


def masked_snapshot_of(recording: Path, snapshot: Snapshot) -> Snapshot:
    """Return a snapshot with the secrets masked, for good, that are masked in the recording of its run."""
    strings = snapshot.strings
    masked = masked_like(recording, strings.data, has_beginnings=True)
    return replace(snapshot, strings=Strings(masked, strings.ends))
