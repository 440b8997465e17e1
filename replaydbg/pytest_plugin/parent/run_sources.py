"""The sources that a running program imports, stored once for all recordings that are cut out of its run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from replaydbg.log.entries.logfile import LOG_HEADER
from replaydbg.log.files import PIECE
from replaydbg.record.caches.sources import imported, is_installed, source_name, source_of
from replaydbg.record.end_facts import packages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from replaydbg.log.edit.growing_secrets import GrowingSecrets
    from replaydbg.log.sealed.shared import BlockStore


class RunSources:
    """The sources that the program has imported, as they were right after their import."""

    def __init__(self, live: Path) -> None:
        self._world = live / "world"
        self.store: BlockStore | None = None
        """Where they are stored, once a recording is kept."""
        self._seen = LOG_HEADER
        self._names: dict[str, str] = {}
        """Path to the hash of the content, under which it is stored."""
        self._unstored: dict[str, bytes] = {}
        """Path to content: sources that no kept recording has needed so far."""
        self._secrets: GrowingSecrets | None = None
        """The secrets that are masked in recordings; None: nothing is masked."""
        self._hidden: dict[str, bytes] = {}
        """Sources with secrets, by their names: they cannot be shared, since a masked one has another hash."""
        self._packages: dict[str, str] | None = None
        self._stored: tuple[int, bytes] | None = None

    def mask(self, secrets: GrowingSecrets | None) -> None:
        """Let these be masked, and those of sources be among them; None: nothing is masked."""
        self._secrets = secrets
        for path, content in self._unstored.items():
            self._learn(path, content)

    def _learn(self, path: str, content: bytes) -> None:
        if self._secrets is not None and not is_installed(path):
            self._secrets.learn_in(content)

    def update(self, end: int) -> None:
        """Add what was imported up to byte `end` of the import world. Raises OSError."""
        if end <= self._seen:
            return
        with self._world.open("rb") as file:
            file.seek(self._seen)
            data = file.read(end - self._seen)
        self._seen = end
        for path in imported(data):
            content = source_of(path) if path not in self._names and path not in self._unstored else None
            if not content or len(content) > PIECE:
                continue  # a file of that size is data; a replay takes it from the import world
            self._learn(path, content)
            self._unstored[path] = content

    def hidden_sources(self) -> Mapping[str, bytes]:
        """Return the sources that have secrets, by name."""
        return self._hidden

    def end_fields(self) -> tuple[int, bytes]:
        """Return the last fields of `end.json`: their length, and the names that a BlockStore returned for them.

        Stores what was added so far. Raises OSError.
        """
        store = self.store
        assert store is not None, "no recording is kept yet"
        while self._unstored:
            path, content = next(iter(self._unstored.items()))
            if self._secrets is not None and self._secrets.has_any(content):
                self._names[path] = source_name(content)
                self._hidden[self._names[path]] = content
            else:
                self._names[path] = store.put(content).hex()
            del self._unstored[path]
            self._stored = None
        if self._stored is None:
            if self._packages is None:
                self._packages = packages(sys.path)
            text = json.dumps({"packages": self._packages, "sources": self._names}).encode()[1:]
            self._stored = len(text), store.entry(text)
        return self._stored
