"""Facts of a recording about the repository: its directory, and its files that are in no commit."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from importlib.util import source_from_cache
from pathlib import Path

from replaydbg.commits.repository import Repository
from replaydbg.commits.surroundings import place_in
from replaydbg.errors import UsageError
from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from replaydbg.log.sources import sources_of

_INSTALLED = "site-packages"


def find_root(recording: Path, repository: Repository, bad: str) -> Path:
    """Return the repository's directory as the recorded program saw it.

    Sources are compared with the files of the commit `bad`: equal content decides, then equal paths. Raises UsageError
    if the program ran none of them.
    """
    return find_root_among(recording, _sources(recording), repository.blobs(bad))


def find_root_among(recording: Path, sources: Mapping[str, bytes], blobs: Mapping[str, str]) -> Path:
    """Return the same for the sources of a recording, and the hashes of a commit's files by their paths from the root.

    Raises UsageError.
    """
    digits = len(next(iter(blobs.values()), ""))
    same: Counter[str] = Counter()
    alike: Counter[str] = Counter()
    for path, content in sources.items():
        below = _tracked_below(path, blobs)
        if below is not None:
            root, tracked = below
            alike[root] += 1
            same[root] += _blob(content, digits) == blobs[tracked]
    best = [root for root, count in same.most_common(1) if count] or [root for root, _ in alike.most_common(1)]
    if not best:
        raise UsageError(
            f"The recording {str(recording)!r} is of a different program: it ran no source file of this repository."
        )
    return Path(best[0])


def moved(recording: Path, root: Path, worktree: Path, *, is_rest_recorded: bool = False) -> dict[str, str]:
    """Return where directories of the recorded program are read, innermost first: the repository's in the worktree.

    Packages that were installed in it, such as in `.venv`, are in no commit and stay in place; with
    `is_rest_recorded` they come from the recording.
    """
    kept = set()
    for path in _sources(recording):
        parts = Path(path).parts
        if Path(path).is_relative_to(root) and _INSTALLED in parts:
            kept.add(str(Path(*parts[: parts.index(_INSTALLED) + 1])))
    return {**{each: "" if is_rest_recorded else each for each in sorted(kept)}, str(root): str(worktree)}


def untracked(recording: Path, root: Path, files: Collection[str]) -> dict[str, bytes]:
    """Return the recorded sources in the repository that are in no commit, by path from the root.

    Often that is the script. Packages that were installed there are left out.
    """
    found = {}
    for path, content in _sources(recording).items():
        if Path(path).is_relative_to(root) and _INSTALLED not in Path(path).parts:
            inside = str(Path(path).relative_to(root))
            if inside not in files:
                found[inside] = content
    return found


def test_files(recording: Path, root: Path) -> dict[str, bytes]:
    """Return the modules of the repository that pytest itself has read and compiled, by path from the root.

    These are the test's file, `conftest.py` and helpers: data, which comes from the recording in a replay. But they
    must exist to be imported, also at a commit from before they were written.
    """
    with open_recording(recording) as opened:
        imported = {answer.path for answer in opened.world() if answer.operation == "read"}
        found = sources_of(opened)
    with_caches = imported | {source_of_cache(path) for path in imported}
    return {
        str(Path(path).relative_to(root)): content
        for path, content in found.items()
        if path not in with_caches and Path(path).is_relative_to(root) and _INSTALLED not in Path(path).parts
    }


test_files.__test__ = False  # type: ignore[attr-defined]


def source_of_cache(path: str) -> str:
    """Return the path of the source of a file with byte code; of another file its own."""
    with suppress(ValueError):  # a path of another kind
        return source_from_cache(path) if path.endswith(".pyc") else path
    return path


def data_files(recording: Path, root: Path, files: Collection[str]) -> tuple[str, ...]:
    """Return the tracked files that the program opened as data, from the root."""
    found: dict[str, None] = {}
    with open_recording(recording) as opened:
        code = opened.end.sources if opened.end is not None else {}
        for event in opened.events(gate="_io.FileIO.__init__"):
            path = event.arguments[0] if isinstance(event, Event) and event.arguments else None
            if isinstance(path, str) and path not in code:
                whole = Path(os.path.normpath(Path(opened.header.cwd, path)))
                if whole.is_relative_to(root) and str(whole.relative_to(root)) in files:
                    found[str(whole.relative_to(root))] = None
    return tuple(found)


def write_missing(recording: Path, root: Path, files: Collection[str], worktree: Path) -> list[Path]:
    """Write to the worktree the recorded sources that are in no commit, and test files that it lacks; return these.

    Raises OSError.
    """
    written = []
    for inside, content in {**test_files(recording, root), **untracked(recording, root, files)}.items():
        if not os.path.lexists(worktree / inside):
            place = place_in(worktree, Path(inside))
            written.append(place)
            place.write_bytes(content)
    return written


def _sources(recording: Path) -> dict[str, bytes]:
    with open_recording(recording) as opened:
        return sources_of(opened)


def _tracked_below(path: str, blobs: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the longest root for which `path` is a file of the repository, and that file."""
    parts = Path(path).parts
    for first in range(1, len(parts)):
        tracked = "/".join(parts[first:])
        if tracked in blobs:
            return str(Path(*parts[:first])), tracked
    return None


def _blob(content: bytes, digits: int) -> str:
    """Return git's name of a file's content, in a repository whose names have `digits` digits."""
    kind = hashlib.sha256 if digits == 64 else hashlib.sha1
    return kind(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
