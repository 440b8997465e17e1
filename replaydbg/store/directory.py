"""The user's directory of recordings: naming new ones, finding and removing old ones."""

from __future__ import annotations

import os
import re
from pathlib import Path

from replaydbg.classes import NamedTuple
from replaydbg.errors import NoSuchRecording, UsageError

SEALED, LIVE = ".rdbg", ".rdbg-live"
"""The suffixes of a sealed recording and of a live directory."""

_RUN = re.compile(r"run-([1-9][0-9]{0,17})")


class StoredRecording(NamedTuple):
    """One recording of the store."""

    name: str
    """Its name, such as `run-12`."""
    path: Path
    """The sealed file, or the live directory."""
    is_live: bool
    """Whether it is a live directory."""

    @property
    def number(self) -> int:
        """The number in its name; 0 if it was named by its user."""
        match = _RUN.fullmatch(self.name)
        return int(match[1]) if match else 0


class Store:
    """A directory of recordings. It need not exist until something is created in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def create(self) -> Path:
        """Make the live directory of a new recording and return it.

        Two concurrent recorders get different names. Raises OSError if the store cannot be written.
        """
        # Recordings contain environments and file contents: only their user may read them.
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        number = max((stored.number for stored in self.list()), default=0)
        while True:
            number += 1
            live = self.directory / f"run-{number}{LIVE}"
            try:
                live.mkdir(mode=0o700)
            except FileExistsError:
                continue
            # Another recorder may have taken the number, sealed, and removed its directory since the check.
            if not os.path.lexists(sealed_path(live)):
                return live
            live.rmdir()

    def list(self) -> list[StoredRecording]:
        """Return the recordings, oldest first; one that is both sealed and live counts as sealed."""
        found: dict[str, StoredRecording] = {}
        try:
            paths = sorted(self.directory.iterdir())
        except OSError:
            # There are no recordings yet.
            return []
        for path in paths:
            if path.name.startswith("."):
                continue
            if path.name.endswith(LIVE):
                name = path.name.removesuffix(LIVE)
                found.setdefault(name, StoredRecording(name, path, True))
            elif path.name.endswith(SEALED):
                name = path.name.removesuffix(SEALED)
                found[name] = StoredRecording(name, path, False)
        return sorted(found.values(), key=lambda stored: (stored.number, stored.name))

    def resolve(self, text: str) -> Path:
        """Return the recording that `text` names: `latest`, a name in the store, or a path, with or without its suffix.

        A name in the store takes precedence over a file with that name in the working directory, which needs a `./` in
        front. Raises NoSuchRecording, or UsageError for an empty text.
        """
        if not text:
            raise UsageError("The name of a recording is empty. `replaydbg ls` shows those that exist.")
        stored = self.list()
        if text == "latest":
            if not stored:
                raise NoSuchRecording(text, str(self.directory))
            return stored[-1].path
        for one in stored:
            if one.name == text:
                return one.path
        path = Path(text)
        candidates = [path]
        if path.name.endswith(SEALED):
            candidates.append(path.with_name(path.name.removesuffix(SEALED) + LIVE))
        elif path.name and not path.name.endswith(LIVE):
            # As `record -o NAME` takes it.
            candidates += [path.with_name(path.name + ending) for ending in (SEALED, LIVE)]
        for candidate in candidates:
            if os.path.lexists(candidate):
                return candidate
        raise NoSuchRecording(text, str(self.directory))

    def name_of(self, path: Path) -> str:
        """Return the text that `resolve` turns into `path`: a name if it is in the store, else the path itself."""
        for ending in (SEALED, LIVE):
            if path.parent == self.directory and path.name.endswith(ending):
                return path.name.removesuffix(ending)
        return str(path)


def sealed_path(live: Path) -> Path:
    """Return the path to which the live directory `live` is sealed."""
    return live.with_name(live.name.removesuffix(LIVE) + SEALED)


def live_path(sealed: Path) -> Path:
    """Return the live directory that belongs to the sealed file `sealed`."""
    return sealed.with_name(sealed.name.removesuffix(SEALED) + LIVE)
