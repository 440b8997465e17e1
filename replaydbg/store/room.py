"""How much room recordings of a store take together: a block that several of them use counts once."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from replaydbg.errors import ReplaydbgError
from replaydbg.log.group import group_directory
from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.log.used_blocks import used_blocks
from replaydbg.store.catalog import CatalogRow
from replaydbg.store.directory import SEALED, Store


class Room:
    """Counts the room of one recording after the other."""

    def __init__(self, store: Store) -> None:
        self._blocks = store.directory / DIRECTORY
        self._has_blocks = self._blocks.is_dir()
        self._counted: set[int] = set()
        """The numbers (inodes) of blocks: groups have other names for those of the store."""

    def take(self, row: CatalogRow) -> int:
        """Return how many bytes a recording takes beside those that were counted before."""
        path = Path(row.path)
        group = group_directory(path)
        if group is not None:
            return row.size - self._known_of(group / DIRECTORY)
        if not self._has_blocks or not path.name.endswith(SEALED) or path.parent != self._blocks.parent:
            return row.size
        names: set[str] = set()
        with suppress(ReplaydbgError):  # a damaged one, which has its own size at least
            names = used_blocks(path)
        return row.size + sum(self._size(name) for name in names)

    def _known_of(self, blocks: Path) -> int:
        """Return how much of a group's blocks was counted before, as those of other recordings."""
        known = 0
        with suppress(OSError):  # it has none
            for entry in os.scandir(blocks):
                found = entry.stat(follow_symlinks=False)
                known += found.st_blocks * 512 if found.st_ino in self._counted else 0
                self._counted.add(found.st_ino)
        return known

    def _size(self, name: str) -> int:
        with suppress(OSError):  # a small source is in the recording itself
            found = os.stat(f"{self._blocks}/{name}")  # noqa: PTH116
            if found.st_ino not in self._counted:
                self._counted.add(found.st_ino)
                return found.st_size
        return 0
