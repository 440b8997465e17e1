"""The snapshots that a recording holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from replaydbg.errors import Corrupt
from replaydbg.heap import raw
from replaydbg.heap.pack import LONGEST_CHAIN, MEMORY_LIMIT, Base, Link, mark_of, read_begin, unpack
from replaydbg.heap.snapshot import Snapshot, Taken
from replaydbg.log.reader import Recording, open_recording

_PREFIX = "heap/"


def stored_snapshots(recording: Recording) -> tuple[Taken, ...]:
    """Return when each snapshot in a recording was taken, in order; those that cannot be read are left out."""
    found = []
    for name in _names(recording):
        try:
            taken, _ = _begin(recording, name)
        except Corrupt:
            continue  # said when it is asked for
        found.append(_moved(recording, taken))
    return tuple(sorted(found, key=lambda each: each.number))


def load_stored(recording: Recording, number: int, *, limit: int = MEMORY_LIMIT) -> Snapshot:
    """Return the snapshot of that number. Raises KeyError if there is none, Corrupt if it cannot be read."""
    names = {int(name.removeprefix(_PREFIX)): name for name in _names(recording)}
    if number not in names:
        raise KeyError(number)
    base = None
    for each in _chain(recording, number, names):
        path = _place(recording, names[each])
        data = recording.section(names[each], limit=limit)
        snapshot = _read(data, path, limit, base)
        base = Base(snapshot, mark_of(data))
    return replace(snapshot, taken=_moved(recording, snapshot.taken))


def _moved(recording: Recording, taken: Taken) -> Taken:
    """Return the same with the number that the event has now: a test's recording may be without what came before."""
    told = recording.end.raw if recording.end is not None else {}
    try:
        listed = (told.get("snapshots") or {}).get("listed", ())
        event = next((int(each["event"]) for each in listed if each["number"] == taken.number), taken.event)
    except (TypeError, KeyError, ValueError, AttributeError):
        return taken  # anything may stand there
    return replace(taken, event=event)


def _chain(recording: Recording, number: int, names: dict[int, str]) -> list[int]:
    """Return the snapshots that must be read for one, in that order. Raises Corrupt."""
    found = [number]
    while link := _begin(recording, names[found[-1]])[1]:
        path = _place(recording, names[number])
        if link.number not in names:
            raise Corrupt(path, f"the snapshot is coded against number {link.number}, and that is not there")
        if link.number >= found[-1] or len(found) == LONGEST_CHAIN:
            raise Corrupt(path, "what the snapshot is coded against leads to nothing that stands alone")
        found.append(link.number)
    return found[::-1]


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


def _place(recording: Recording, name: str) -> str:
    return f"{recording.path} ({name})"


def _read(data: bytes, path: str, limit: int, base: Base | None = None) -> Snapshot:
    # A live directory has them as the core wrote them.
    return raw.read_raw(data, path) if data.startswith(raw.MAGIC) else unpack(data, path, limit=limit, base=base)


def _begin(recording: Recording, name: str) -> tuple[Taken, Link | None]:
    path = _place(recording, name)
    data = b""
    for piece in recording.pieces(name):
        data += piece
        if data.startswith(raw.MAGIC):
            return raw.read_raw(recording.section(name), path).taken, None
        begin = read_begin(data, path)
        if begin is not None:
            return begin
    raise Corrupt(path, "the snapshot's header is cut off")
