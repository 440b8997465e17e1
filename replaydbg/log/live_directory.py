"""The live directory of a recording that was not sealed: read its sections, and remove it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from replaydbg.errors import Corrupt, NotARecording, ReplaydbgError
from replaydbg.log.entries.checksums import Stretches, is_durable, whole_stretches
from replaydbg.log.entries.logfile import (
    LOG_HEADER,
    TRANSFERS_HEADER,
    pack_log_header,
    read_log_header,
    transfers_end,
)
from replaydbg.log.files import BRANCH, DataFile
from replaydbg.log.sealed.origin import MARK
from replaydbg.log.sealed.sections import InPlace
from replaydbg.secrets.patches import Patches

_LIVE_FILES = {name: name for name in ("world", "log", "content", "transfers")}
_LIVE_FILES |= {"header": "header.json", "end": "end.json"}


class LiveDirectory:
    """The sections of a recording that is still being written, or whose recorder was killed."""

    ok = False
    signature = None

    def __init__(self, path: Path) -> None:
        self.problems: dict[str, bool] = {}
        self._files: dict[str, DataFile] = {}
        self._ends: dict[str, int] = {}
        """Where sections of a durable recording end that are not used to the end of their files."""
        self._heads: dict[str, bytes] = {}
        """How they begin, with numbers that agree."""
        self._directories = {name: path / name for name in ("source", "heap")}
        if not os.path.lexists(path / "header.json"):
            raise NotARecording(str(path), "it is a directory without header.json")
        try:
            for section, name in _LIVE_FILES.items():
                self._open(section, path / name)
        except BaseException:
            self.close()
            raise
        self.problems["It was not sealed: its recorder was killed or is still running."] = False
        self._cut_after_power_loss()

    def _open(self, section: str, path: Path) -> None:
        if not os.path.lexists(path):
            return
        try:
            self._files[section] = DataFile(path, follow=False)
        except ReplaydbgError:
            if section == "header":
                raise
            self.problems[f"Its file {path.name!r} is not a file that can be read."] = True

    def _cut_after_power_loss(self) -> None:
        """Let the sections of a durable recording end where they are whole, and its headers agree with that.

        The headers are read first: a program that still runs only adds to what they cover.
        """
        if "log" not in self._files or not is_durable(self._files["log"]):
            return
        heads = {name: self._files[name].read(0, LOG_HEADER) for name in ("log", "world") if name in self._files}
        content = self._files["content"].size if "content" in self._files else 0
        world = whole_stretches(self._files["world"]) if "world" in heads else None
        log = whole_stretches(self._files["log"], world=world.end if world is not None else 0, content=content)
        cut = self._cut("log", heads["log"], log)
        if world is not None and self._cut("world", heads["world"], world) | cut:
            self._cut_transfers(log.transfers)

    def _cut(self, name: str, head: bytes, whole: Stretches) -> bool:
        """Let a log end where it is whole; whether something is missing."""
        header = read_log_header(head)
        if header is None:
            return False  # the reader says so
        self._ends[name] = whole.end
        self._heads[name] = pack_log_header(header._replace(committed=whole.end, crossings=whole.events))
        if whole.end >= header.committed:
            return False
        lost = header.committed - whole.end
        at = f"after {whole.events:,} events: " if name == "log" else ""
        self.problems[
            f"Power was lost: its section {name!r} is whole up to byte {whole.end:,}, {at}{whole.why}, and the "
            f"{lost:,} bytes after that are not used."
        ] = False
        return True

    def _cut_transfers(self, synced: int) -> None:
        """Keep of `transfers` what was synchronised: later slots may have been written in part."""
        if "transfers" in self._files:
            head = self._files["transfers"].read(0, TRANSFERS_HEADER)
            end = min(max(synced, TRANSFERS_HEADER), self._files["transfers"].size)
            if transfers_end(head):
                self._ends["transfers"] = end
                self._heads["transfers"] = head[:16] + end.to_bytes(8, "little") + head[24:]

    @property
    def masked(self) -> None:
        """Nothing: secrets are masked when a recording is sealed."""

    @property
    def secrets(self) -> Patches:
        """Nothing."""
        return {}

    @property
    def hidden(self) -> None:
        """Nothing: secrets are masked when a recording is sealed."""

    def names(self) -> tuple[str, ...]:
        """Return the names of the sections that have bytes."""
        found = [name for name, file in self._files.items() if file.size]
        for section, directory in self._directories.items():
            try:
                found += sorted(f"{section}/{each.name}" for each in directory.iterdir() if each.name != "state")
            except OSError:
                continue  # most live directories have none
        return tuple(found)

    @contextmanager
    def _file(self, name: str) -> Iterator[DataFile | None]:
        """Yield a section's file. Those in folders are opened on demand: there can be more than descriptors."""
        folder, _, file_name = name.partition("/")
        if name in self._files or folder not in self._directories or "/" in file_name:
            yield self._files.get(name)
            return
        try:
            file = DataFile(self._directories[folder] / file_name, follow=False)
        except ReplaydbgError:
            yield None
            return
        with file:
            yield file

    def size(self, name: str) -> int:
        """Return the number of bytes found of a section; 0 if it does not exist."""
        with self._file(name) as file:
            return 0 if file is None else self._ends.get(name, file.size)

    def stored(self, name: str) -> int:
        """Return how many bytes of the disk a section takes."""
        return self.size(name)

    def is_whole(self, name: str) -> bool:
        """Whether nothing is known to be missing at the section's end: here this cannot be detected."""
        return True

    def pieces(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield a section's bytes from `start`."""
        with self._file(name) as file:
            if file is None:
                return
            head = self._heads.get(name, b"")[start:]
            for piece in file.pieces(self._ends.get(name, file.size), start):
                yield head + piece[len(head) :]
                head = b""

    def stored_pieces(self, name: str) -> Iterator[bytes]:
        """Yield the same: there are no masks."""
        return self.pieces(name)

    def in_place(self, name: str) -> InPlace | None:
        """Return nothing: the files of a live directory may be written to."""
        return None

    def shared_names(self) -> set[str]:
        """Return nothing: a live directory shares no blocks."""
        return set()

    def is_shared(self, name: str) -> bool:
        """Return False: nothing is shared yet."""
        return False

    def shared_blocks(self, name: str) -> Iterator[tuple[int, bytes]]:
        """Raise Corrupt: a live directory has no blocks."""
        raise Corrupt("a live directory", f"its section {name!r} has no blocks")

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()


_WRITTEN = (
    "boot",
    "state",
    "world",
    "content",
    "transfers",
    "notes",
    "marks",
    "end.json",
    "log",
    MARK,
    BRANCH,
)
"""Files that recorders write into a live directory, beside its header."""


def remove_live(live: Path) -> None:
    """Remove a live directory and a recorder's files in it; with any other file in it, the directory stays.

    Two processes may do it at once: one that seals, and one that finds that it is sealed. The header goes last: what
    has none is no longer a recording.
    """
    with suppress(FileNotFoundError):
        while True:
            _remove_files(live)
            try:
                live.rmdir()
                return
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:
                    raise
            # What another process has noted meanwhile is removed again. Other files are somebody's own.
            if any(path.name not in (*_WRITTEN, "header.json") for path in live.iterdir()):
                return


def _remove_files(live: Path) -> None:
    for name in _WRITTEN:
        (live / name).unlink(missing_ok=True)
    for folder in (live / "source", live / "heap"):
        if folder.is_dir() and not folder.is_symlink():
            with suppress(FileNotFoundError):
                for path in folder.iterdir():
                    path.unlink(missing_ok=True)
                folder.rmdir()
    (live / "header.json").unlink(missing_ok=True)
