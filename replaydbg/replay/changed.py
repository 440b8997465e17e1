"""Which of the sources that a recorded program ran are others today."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from replaydbg.log.reader import Recording


def changed_sources(
    recording: Recording, sources: Mapping[str, str] | None = None, *, only_moved: bool = False
) -> tuple[str, ...]:
    """Return the recorded paths of those that are missing or have another content today.

    `sources` maps directories of the recording to where they are today; with `only_moved` nothing else is looked at.
    A recording that was never sealed does not know its sources: then the script alone is named, if there is one.
    """
    if recording.end is None or not recording.end.sources:
        return (recording.header.target,) if recording.header.kind == "script" else ("?",)
    changed = []
    for path, digest in sorted(recording.end.sources.items()):
        moved = where_today(path, sources or {})
        if moved is None and only_moved:
            continue
        if _digest(Path(moved or path)) != digest:
            changed.append(path)
    return tuple(changed)


def where_today(path: str, sources: Mapping[str, str]) -> str | None:
    """Return where the file `path` of the recording is read from, or None if it lies below none of the directories."""
    for old, new in sources.items():
        if path == old or path.startswith(old.rstrip("/") + "/"):
            return new.rstrip("/") + path[len(old.rstrip("/")) :]
    return None


def _digest(path: Path) -> str:
    try:
        return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
    except OSError:
        # Missing, or not ours to read: no digest is this one.
        return ""
