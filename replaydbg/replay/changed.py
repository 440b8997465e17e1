"""Find the sources of a recorded program that have changed since."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from replaydbg.log.reader import Recording


def changed_sources(
    recording: Recording, sources: Mapping[str, str] | None = None, *, only_moved: bool = False
) -> tuple[str, ...]:
    """Return the recorded paths of the sources that are missing or have another content today.

    `sources` maps directories of the recording to those of today; with `only_moved` no other files are checked. A
    recording that was never sealed has no list of sources: then only the script is compared, if there is one.
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
    """Return where the file `path` of the recording is read today, or None if it comes from the recording."""
    for old, new in sources.items():
        if path == old or path.startswith(old.rstrip("/") + "/"):
            return None if not new else new.rstrip("/") + path[len(old.rstrip("/")) :]
    return None


def _digest(path: Path) -> str:
    try:
        return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
    except OSError:
        # Missing or unreadable: no digest equals this one.
        return ""
