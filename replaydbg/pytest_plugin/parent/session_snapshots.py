"""The snapshots of a session's tests. The first one is stored once, and those of later tests as differences from it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from replaydbg.classes import NamedTuple
from replaydbg.errors import ReplaydbgError
from replaydbg.heap.snapshot import Snapshot
from replaydbg.heap.storage.snapshot_file import ANY_FILE, memory_of
from replaydbg.heap.storage.snapshot_series import SelfContained, SnapshotPacker
from replaydbg.log.files import PIECE
from replaydbg.record.snapshots import read_snapshots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.log.edit.growing_secrets import GrowingSecrets
    from replaydbg.log.json_data import SnapshotData
    from replaydbg.log.sealed.shared import BlockStore

_LARGEST = ANY_FILE // 4
"""Bytes of memory up to which a snapshot is stored as a difference from another test's. Its share of the recording says
little about its size then, and readers limit their memory by that.
"""


class KeptSnapshots(NamedTuple):
    """The snapshots in the recording of a test."""

    listed: list[SnapshotData]
    """The facts about each."""
    bases: list[int]
    """Numbers of others, which are needed to read them."""
    sections: dict[int, bytes | tuple[int, bytes]]
    """By number: the file of each, or its length and the name that a BlockStore returned for it."""


class _First(NamedTuple):
    """The first snapshot of the session that was stored."""

    number: int
    file: SelfContained
    section: tuple[int, bytes]
    """Its length, and the name that the BlockStore returned for it."""


class SessionSnapshots:
    """Packs the snapshots of one test after the other."""

    def __init__(self, live: Path, store: BlockStore, secrets: GrowingSecrets | None = None) -> None:
        """`secrets` are masked for good."""
        self._secrets = secrets
        self._live = live
        self._store = store
        self._run = f"{live.name} {time.time_ns()}"
        self._first: _First | None = None

    def of_test(self, numbers: Sequence[int]) -> KeptSnapshots:
        """Return those with `numbers`, which ascend. One that cannot be read or stored is left out."""
        found = KeptSnapshots([], [], {})
        with suppress(ReplaydbgError, OSError):  # a recording works without a snapshot
            series: SnapshotPacker | None = None
            for facts, snapshot in read_snapshots(self._live, numbers, self._run, self._secrets):
                is_small = memory_of(snapshot) <= _LARGEST
                first = self._first
                if series is None:
                    series = SnapshotPacker(first.file if first is not None and is_small else None)
                    data = series.pack(snapshot)
                    if first is not None and series.is_delta:
                        found.bases.append(first.number)
                        found.sections[first.number] = first.section
                else:
                    if not is_small and any(isinstance(each, tuple) for each in found.sections.values()):
                        series = SnapshotPacker()
                    data = series.pack(snapshot)
                number = facts["number"]
                found.sections[number] = data
                if first is None and is_small and len(data) <= PIECE:
                    self._first = self._stored(number, snapshot, data)
                    found.sections[number] = self._first.section
                found.listed.append(facts)
        return found

    def _stored(self, number: int, snapshot: Snapshot, data: bytes) -> _First:
        return _First(number, SelfContained(snapshot, data), (len(data), self._store.entry(data)))
