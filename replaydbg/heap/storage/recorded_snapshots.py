"""The snapshots in a recording."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from replaydbg.errors import Corrupt
from replaydbg.heap.snapshot import Snapshot, Taken
from replaydbg.heap.storage import raw_snapshot
from replaydbg.heap.storage.snapshot_file import (
    LONGEST_CHAIN,
    MEMORY_LIMIT,
    DeltaBase,
    claim,
    mark_of,
    read_begin,
    unpack,
)
from replaydbg.heap.storage.snapshot_header import Link
from replaydbg.log.reader import Recording, open_recording

_PREFIX = "heap/"
SERIES_LIMIT = 512 << 20
"""Total size in bytes of snapshots that are analysed together; above it some are left out."""
FEWEST_OF_SERIES = 4
"""Number of snapshots that are analysed however large they are."""


def stored_snapshots(recording: Recording, unreadable: list[Corrupt] | None = None) -> tuple[Taken, ...]:
    """Return when each snapshot in a recording was taken, in order.

    Unreadable ones are left out, and the reasons added to `unreadable`. So are those of other recordings, which are in
    it only because others are stored as differences from them.
    """
    found = []
    bases = _bases(recording)
    for number, name in _by_number(recording).items():
        if number in bases:
            continue
        try:
            taken, _ = _begin(recording, name, number)
        except Corrupt as error:
            if unreadable is not None:
                unreadable.append(error)
            continue
        found.append(_moved(recording, taken))
    return tuple(sorted(found, key=lambda each: each.number))


def load_stored(recording: Recording, number: int, *, limit: int = MEMORY_LIMIT) -> Snapshot:
    """Return the snapshot of that number. Raises KeyError if there is none, Corrupt if it cannot be read."""
    names = _by_number(recording)
    if number not in names:
        raise KeyError(number)
    base = _load(recording, number, names, limit, None)
    return replace(base.snapshot, taken=_moved(recording, base.snapshot.taken))


def load_series(recording: Recording, notify: Callable[[str], None]) -> list[Snapshot]:
    """Return the snapshots of a recording, in order; if all would take too much memory, some spread over the run.

    `notify` receives a sentence if some are left out. Raises Corrupt if one cannot be read.
    """
    names = _by_number(recording)
    numbers = [each.number for each in stored_snapshots(recording)]
    claims = {number: _claim(recording, names[number]) for number in numbers}
    wanted = numbers
    while sum(claims[number] for number in wanted) > SERIES_LIMIT and len(wanted) > FEWEST_OF_SERIES:
        most = max(FEWEST_OF_SERIES, len(wanted) * 3 // 4)
        wanted = [numbers[place * (len(numbers) - 1) // (most - 1)] for place in range(most)]
    if len(wanted) < len(numbers):
        notify(f"{len(wanted)} of {len(numbers)} snapshots were compared: all of them would take too much memory.")
    found = []
    base: DeltaBase | None = None
    for number in wanted:
        # The next one is mostly coded against this one.
        base = _load(recording, number, names, MEMORY_LIMIT, base)
        found.append(replace(base.snapshot, taken=_moved(recording, base.snapshot.taken)))
    return found


def _load(recording: Recording, number: int, names: dict[int, str], limit: int, known: DeltaBase | None) -> DeltaBase:
    """Return a snapshot; `known` is one that was already read."""
    base: DeltaBase | None = None
    for each in _chain(recording, number, names):
        if known is not None and each == known.snapshot.taken.number:
            base = known
            continue
        data = recording.section(names[each], limit=limit)
        stored = min(len(data), recording.stored(names[each]))
        snapshot = _read(data, _place(recording, names[each]), limit, base, stored)
        base = DeltaBase(snapshot, mark_of(data), stored + (base.stored if base is not None else 0))
    assert base is not None, "a chain has at least the snapshot itself"
    return base


def _claim(recording: Recording, name: str) -> int:
    """Return how much memory a snapshot takes according to its header."""
    begin = recording.section(name)
    return len(begin) if begin.startswith(raw_snapshot.MAGIC) else claim(begin, _place(recording, name))


def _by_number(recording: Recording) -> dict[int, str]:
    return {int(name.removeprefix(_PREFIX)): name for name in _names(recording)}


def _bases(recording: Recording) -> list[object]:
    """Return the numbers of snapshots that are not of this recording."""
    end = recording.end.raw if recording.end is not None else {}
    entry = end.get("snapshots")
    bases = entry.get("bases") if isinstance(entry, dict) else None
    return bases if isinstance(bases, list) else []


def _moved(recording: Recording, taken: Taken) -> Taken:
    """Return the same with the event's present number: the recording of a test may lack the events before it."""
    end = recording.end.raw if recording.end is not None else {}
    try:
        listed = (end.get("snapshots") or {}).get("listed", ())
        event = next((int(each["event"]) for each in listed if each["number"] == taken.number), taken.event)
    except (TypeError, KeyError, ValueError, AttributeError, OverflowError):
        return taken  # the section may contain anything
    return replace(taken, event=event)


def _chain(recording: Recording, number: int, names: dict[int, str]) -> list[int]:
    """Return the snapshots that must be read for one, in that order. Raises Corrupt."""
    found = [number]
    while link := _begin(recording, names[found[-1]], found[-1])[1]:
        path = _place(recording, names[number])
        if link.number not in names:
            raise Corrupt(path, f"the snapshot is encoded against number {link.number}, which is missing")
        if link.number >= found[-1] or len(found) == LONGEST_CHAIN:
            raise Corrupt(path, "the snapshot's chain of deltas does not end in a full snapshot")
        found.append(link.number)
    return found[::-1]


def read_snapshot(path: Path, *, limit: int = MEMORY_LIMIT) -> Snapshot:
    """Return the snapshot in a file of its own. Raises Corrupt, NewerFormat, OSError."""
    if path.stat().st_size > limit:
        raise Corrupt(str(path), f"it is larger than {limit:,} bytes, the limit for a snapshot")
    return _read(path.read_bytes(), str(path), limit)


def snapshots_of(path: Path) -> tuple[Taken, ...]:
    """Return when the snapshots in the recording at `path` were taken. Raises what `open_recording` raises."""
    with open_recording(path) as recording:
        return stored_snapshots(recording)


def _names(recording: Recording) -> list[str]:
    numbers = [name.removeprefix(_PREFIX) for name in recording.sections if name.startswith(_PREFIX)]
    return [_PREFIX + each for each in sorted(numbers) if each.isascii() and each.isdigit()]


def _place(recording: Recording, name: str) -> str:
    return f"{recording.path} ({name})"


def _read(data: bytes, path: str, limit: int, base: DeltaBase | None = None, stored: int | None = None) -> Snapshot:
    if data.startswith(raw_snapshot.MAGIC):  # a live directory has them as the core wrote them
        return raw_snapshot.read_raw(data, path)
    return unpack(data, path, limit=limit, base=base, stored=stored)


def _begin(recording: Recording, name: str, number: int) -> tuple[Taken, Link | None]:
    """Return when the snapshot `number` was taken, and its base if it is delta-coded. Raises Corrupt."""
    path = _place(recording, name)
    data = b""
    for piece in recording.pieces(name):
        data += piece
        is_raw = data.startswith(raw_snapshot.MAGIC)
        begin = (raw_snapshot.read_raw(recording.section(name), path).taken, None) if is_raw else read_begin(data, path)
        if begin is None:
            continue
        # Delta-coded snapshots and callers refer to it by the number in its section's name.
        if begin[0].number != number:
            raise Corrupt(path, f"the snapshot has the wrong number {begin[0].number}")
        return begin
    raise Corrupt(path, "the snapshot's header is cut off")
