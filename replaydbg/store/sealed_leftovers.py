"""Live directories whose recorder was killed after it had sealed them and before it had removed them.

The sealed file gets its name when all of it is on the disk, and only then the live directory is removed, its header
last. So a directory with the header of a sound sealed file beside it has nothing that the file does not have. It has
secrets in the clear, which the file masks.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from replaydbg.errors import ReplaydbgError
from replaydbg.log.group import HIDDEN_PAGE, PAGE, group_directory, process_number, read_group
from replaydbg.log.live_directory import remove_live
from replaydbg.store.directory import GROUP, LIVE, SEALED, sealed_path
from replaydbg.store.process_check import writer_of

_SAME = ("run", "created", "resumed", "group")
"""Fields of the header that a live directory and its sealed file have in common, and no other recording has."""
_YOUNG = 60.0
"""Seconds. A younger directory without any file may be one in which a recording begins."""


def remove_sealed_leftovers(directory: Path) -> None:
    """Remove from a store the live directories, also in groups, that are in sealed files, all of which are sound.

    What cannot be removed stays.
    """
    names = _names(directory)
    for name in _left(names):
        remove_if_sealed(directory / name)
    for name in names:
        group = directory / name
        # The page of a group is there until all of its recordings are sealed.
        if name.endswith(GROUP) and any(os.path.lexists(group / page) for page in (PAGE, HIDDEN_PAGE)):
            _remove_in_group(group)


def remove_if_sealed(live: Path) -> bool:
    """Remove a live directory if the sealed file beside it is sound and has all of it; return whether it is gone."""
    with suppress(OSError, ReplaydbgError):
        if not _is_sealed(live):
            return False
        remove_live(live)
    return not os.path.lexists(live)


def _remove_in_group(group: Path) -> None:
    """Remove live directories of a group, if each of its processes has a sealed recording."""
    lives = [group / name for name in _names(group) if name.endswith(LIVE)]
    with suppress(OSError, ReplaydbgError):
        recorded = [group / each.recording for each in read_group(group).processes if each.recording is not None]
        sealed = {path.name.partition(".")[0] + SEALED for path in (*recorded, *lives)}
        if lives and all((group / name).is_file() for name in sealed) and all(map(_is_sealed, lives)):
            for live in lives:
                remove_live(live)


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)  # noqa: PTH208 - each recording waits for it, and there may be very many
    except OSError:
        return []  # it does not exist, or cannot be read


def _left(names: Iterable[str]) -> list[str]:
    """Return the names of live directories with a sealed file beside them."""
    known = set(names)
    return [each for each in known if each.endswith(LIVE) and sealed_path(Path(each)).name in known]


def _is_sealed(live: Path) -> bool:
    """Whether a sound sealed file has all of a live directory, and nobody writes it. Raises OSError, ReplaydbgError."""
    # Imported here: most recordings leave no directory, and wait for this module.
    from replaydbg.log.reader import open_recording
    from replaydbg.log.soundness import is_sound

    sealed = sealed_path(live)
    if not stat.S_ISDIR(live.lstat().st_mode) or not stat.S_ISREG(sealed.lstat().st_mode):
        return False
    header = _header(live)
    if header is None and not _is_old_and_empty(live):
        return False
    with open_recording(sealed) as recording:
        number = process_number(sealed) if group_directory(sealed) is not None else recording.header.process
        same = header is None or all(header.get(each) == recording.header.raw.get(each) for each in _SAME)
        # What takes long comes last: of a recording that replaces another one, the file is that of the other.
        is_whole = same and recording.header.process == number and recording.end is not None
        return is_whole and not _is_written(live) and is_sound(recording)


def _is_written(live: Path) -> bool:
    log = live / "log"
    return os.path.lexists(log) and writer_of(log.lstat()) is not None


def _header(live: Path) -> dict[str, object] | None:
    """Return the header of a live directory; None: it has none that identifies a run."""
    from replaydbg.log.allowance import load_json
    from replaydbg.log.files import DataFile
    from replaydbg.log.header_and_end import JSON_LIMIT

    if not os.path.lexists(live / "header.json"):
        return None
    with DataFile(live / "header.json", follow=False) as file:
        data = file.read(0, min(file.size, JSON_LIMIT))
    try:
        found = load_json(data)
    except ValueError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("run"), str) else None


def _is_old_and_empty(live: Path) -> bool:
    """Whether nothing but the directory itself was left to be removed."""
    return not any(live.iterdir()) and live.lstat().st_mtime < time.time() - _YOUNG
