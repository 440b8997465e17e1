"""The snapshots of a run, packed one after the other: most are delta-coded against the one before."""

from __future__ import annotations

from replaydbg.heap.snapshot import Snapshot
from replaydbg.heap.storage.snapshot_file import LONGEST_CHAIN, DeltaBase, mark_of, pack


class SelfContained:
    """A self-contained snapshot and its file, as the beginning of several series."""

    def __init__(self, snapshot: Snapshot, data: bytes) -> None:
        self.base = DeltaBase(snapshot, mark_of(data))
        self.bytes_for_each = len(data) / max(len(snapshot), 1)


class SnapshotPacker:
    """Packs snapshots in the order in which they were taken. The last one is kept in memory."""

    def __init__(self, first: SelfContained | None = None) -> None:
        """Begin after the self-contained snapshot `first`, or with one."""
        self._base = first.base if first is not None else None
        self._links = 0
        self._alone = first.bytes_for_each if first is not None else 0.0
        """Bytes for each object in the last self-contained file."""

    @property
    def is_delta(self) -> bool:
        """Whether the last one is delta-coded."""
        return self._links > 0

    def pack(self, snapshot: Snapshot) -> bytes:
        """Return the file of the next snapshot."""
        data = self._changes(snapshot)
        if data is None or len(data) >= self._alone * len(snapshot):
            # Only now: packed both ways, each would take twice the time.
            alone = pack(snapshot)
            self._alone = len(alone) / max(len(snapshot), 1)
            if data is None or len(alone) <= len(data):
                data, self._links = alone, 0
        self._base = DeltaBase(snapshot, mark_of(data))
        return data

    def _changes(self, snapshot: Snapshot) -> bytes | None:
        base = self._base
        if base is None or self._links == LONGEST_CHAIN - 1 or base.snapshot.taken.run != snapshot.taken.run:
            return None
        if not len(base.snapshot) <= 2 * len(snapshot) <= 4 * len(base.snapshot):
            return None  # most objects were removed or added
        self._links += 1
        return pack(snapshot, base)
