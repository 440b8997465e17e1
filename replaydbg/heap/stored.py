"""The snapshots that a recording holds."""

from __future__ import annotations

from pathlib import Path

from replaydbg.errors import Corrupt
from replaydbg.heap import raw
from replaydbg.heap.pack import MEMORY_LIMIT, read_taken, unpack
from replaydbg.heap.snapshot import Snapshot, Taken
from replaydbg.log.reader import Recording, open_recording

_PREFIX = "heap/"


def stored_snapshots(recording: Recording) -> tuple[Taken, ...]:
    """Return when each snapshot in a recording was taken, in order; those that cannot be read are left out."""
    found = []
    for name in _names(recording):
        try:
            taken = _taken(recording, name)
        except Corrupt:
            continue  # said when it is asked for
        found.append(taken)
    return tuple(sorted(found, key=lambda each: each.number))


def load_stored(recording: Recording, number: int, *, limit: int = MEMORY_LIMIT) -> Snapshot:
    """Return the snapshot of that number. Raises KeyError if there is none, Corrupt if it cannot be read."""
    for name in _names(recording):
        if int(name.removeprefix(_PREFIX)) == number:
            return _read(recording.section(name, limit=limit), f"{recording.path} ({name})", limit)
    raise KeyError(number)


def read_snapshot(path: Path, *, limit: int = MEMORY_LIMIT) -> Snapshot:
    """Return the snapshot in a file of its own. Raises Corrupt, NewerFormat, OSError."""
    if path.stat().st_size > limit:
        raise Corrupt(str(path), f"it is larger than {limit:,} bytes, the limit for a snapshot")
    return _read(path.read_bytes(), str(path), limit)


def snapshots_of(path: Path) -> tuple[Taken, ...]:
    """Return when the snapshots in the recording at `path` were taken. Raises what `open_recording` does."""
    with open_recording(path) as recording:
        return stored_snapshots(recording)


def _names(recording: Recording) -> list[str]:
    numbers = [name.removeprefix(_PREFIX) for name in recording.sections if name.startswith(_PREFIX)]
    return [_PREFIX + each for each in sorted(numbers) if each.isascii() and each.isdigit()]


def _read(data: bytes, path: str, limit: int) -> Snapshot:
    # A live directory has them as the core wrote them.
    return raw.read_raw(data, path) if data.startswith(raw.MAGIC) else unpack(data, path, limit=limit)


def _taken(recording: Recording, name: str) -> Taken:
    path = f"{recording.path} ({name})"
    data = b""
    for piece in recording.pieces(name):
        data += piece
        if data.startswith(raw.MAGIC):
            return raw.read_raw(recording.section(name), path).taken
        taken = read_taken(data, path)
        if taken is not None:
            return taken
    raise Corrupt(path, "the snapshot's header is cut off")
