"""Which shared blocks a recording needs: read without its header, since a clean-up asks all recordings of a store."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path

from replaydbg.classes import NamedTuple
from replaydbg.errors import Corrupt, ReplaydbgError
from replaydbg.log.header_and_end import JSON_LIMIT, parse_end
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.group_blocks import name_block
from replaydbg.log.sealed.sections import SealedFile
from replaydbg.log.sealed.shared import DIRECTORY, EMPTY, find_directories, find_sound, load_source


def used_blocks(path: Path) -> set[str]:
    """Return the names of all files outside the recording at `path` that it needs, and of sources that it may have.

    Raises Corrupt if damage hides them; NoSuchRecording, NotARecording, BlocksMissing as opening does.
    """
    if path.is_dir():
        with open_recording(path) as recording:
            return recording.shared_names()
    with closing(SealedFile(path, with_secrets=False, with_signature=False)) as sections:
        if not sections.size("end"):
            raise Corrupt(str(path), "its end is missing")
        return sections.shared_names() | _sources(path, sections)


def needed_blocks(path: Path) -> set[str]:
    """Return the names of the files that a sealed recording needs: sources that it has itself are not among them.

    Raises as `used_blocks`; one that was sealed without an end needs no sources.
    """
    with closing(SealedFile(path, with_secrets=False, with_signature=False)) as sections:
        if sections.problems:
            raise Corrupt(str(path), next(iter(sections.problems)).rstrip("."))
        own = {each.removeprefix("source/") for each in sections.names() if each.startswith("source/")}
        return sections.shared_names() | (_sources(path, sections) - own - {EMPTY})


def block_files(path: Path) -> dict[str, Path]:
    """Return the files, by name, of the shared blocks that a sealed recording needs.

    Raises as `used_blocks`, and Corrupt if one is missing or damaged.
    """
    folders = find_directories(path)
    found = {}
    for name in sorted(needed_blocks(path)):
        sound = find_sound(name, folders)
        if sound is None:
            raise Corrupt(str(path), f"its block {name} is missing or damaged")
        found[name] = sound
    return found


class RestoredBlocks(NamedTuple):
    """Blocks of a group that were damaged or missing in its directory, but not in the store above."""

    restored: int
    """How many are links to those above now."""
    failed: int = 0
    """How many could not be linked."""
    reason: str = ""
    """Why not: that of the first one."""


def restore_blocks(group: Path, members: Iterable[Path]) -> RestoredBlocks:
    """Link blocks of a group again that are damaged or missing in its directory, but not above.

    The recordings read them from above anyway; a copy of the directory could not.
    """
    own = group / DIRECTORY
    names: set[str] = set()
    for path in members if own.is_dir() else ():
        with suppress(ReplaydbgError):  # it is reported when it is read
            names |= needed_blocks(path)
    restored, reasons = 0, []
    for name in sorted(names):
        sound = find_sound(name, find_directories(group)) if load_source(name, own) is None else None
        try:
            if sound is not None:
                name_block(sound, own)
                restored += 1
        except OSError as error:  # the directory cannot be written, or the file system has no links
            reasons.append(error.strerror or str(error))
    return RestoredBlocks(restored, len(reasons), next(iter(reasons), ""))


def _sources(path: Path, sections: SealedFile) -> set[str]:
    """Return the names of the sources."""
    size = sections.size("end")
    if not size or size > JSON_LIMIT:
        return set()
    return set(parse_end(str(path), b"".join(sections.stored_pieces("end"))).sources.values())
