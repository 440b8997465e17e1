"""How much room recordings of a store take together: a block that several of them use counts once."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from replaydbg.errors import ReplaydbgError
from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.log.used_blocks import used_blocks
from replaydbg.store.catalog import CatalogRow
from replaydbg.store.directory import SEALED, Store


class Room:
    """Counts the room of one recording after the other."""

    def __init__(self, store: Store) -> None:
        self._blocks = store.directory / DIRECTORY
        self._has_blocks = self._blocks.is_dir()
        self._counted: set[str] = set()

    def take(self, row: CatalogRow) -> int:
        """Return how many bytes a recording takes beside those that were counted before."""
        path = Path(row.path)
        if not self._has_blocks or not path.name.endswith(SEALED) or path.parent != self._blocks.parent:
            return row.size
        names: set[str] = set()
        with suppress(ReplaydbgError):  # a damaged one, which has its own size at least
            names = used_blocks(path)
        return row.size + sum(self._size(name) for name in names)

    def _size(self, name: str) -> int:
        if name in self._counted:
            return 0
        self._counted.add(name)
        with suppress(OSError):  # a small source is in the recording itself
            return os.stat(f"{self._blocks}/{name}").st_size  # noqa: PTH116
        return 0
