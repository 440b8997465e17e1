"""Files by their content: a manifest lists the pieces of each file, and a piece is named by the hash of its bytes.

Workers ask for the pieces that they lack; nothing is sent twice to the same cache, and nobody can put other bytes under
a name.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from replaydbg.cluster.scheduling.fitness import WorkerNeeds, requirement_of
from replaydbg.cluster.scheduling.git_pack import pack_of
from replaydbg.cluster.tasks import JsonObject
from replaydbg.errors import NotARecording
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.log.used_blocks import block_files
from replaydbg.store.piece_cache import name_of_piece

PIECE_SIZE = 1 << 20
"""Length in bytes of the pieces of a file, but for its last one: small enough for one message."""

MAIN = "main"
"""The name of a content's only file, or of its recording."""


class ListedFile(NamedTuple):
    """A file of a manifest."""

    name: str
    """Its path, relative to the content's directory."""
    size: int
    """In bytes."""
    is_executable: bool
    link: str
    """The target of a symbolic link; empty: it is an ordinary file."""
    pieces: tuple[str, ...]
    """The names of its pieces, in order."""


def write_manifest(files: Iterable[ListedFile]) -> bytes:
    """Return a manifest as bytes; its name is that of a piece with these bytes."""
    return json.dumps([list(each) for each in sorted(files)]).encode("utf-8", "surrogateescape")


def read_manifest(data: bytes) -> list[ListedFile]:
    """Return the files of a manifest."""
    rows = json.loads(data.decode("utf-8", "surrogateescape"))
    return [ListedFile(name, size, executable, link, tuple(pieces)) for name, size, executable, link, pieces in rows]


class _Source(NamedTuple):
    """Where a piece can be read."""

    path: Path
    offset: int
    length: int


class ContentChanged(Exception):
    """A file changed, or is gone, since its pieces were named; the message is the end of a sentence."""


class ContentSupply:
    """The content that tasks refer to; a ContentSink whose references are manifests. Used from several threads."""

    def __init__(self, directory: Path) -> None:
        """Keep copies of what may change meanwhile in `directory`, which must be empty."""
        self._directory = directory
        self._pieces: dict[str, _Source | bytes] = {}
        self._known: dict[object, JsonObject] = {}
        self._requirements: dict[Path, WorkerNeeds] = {}
        self._lock = threading.RLock()

    def recording(self, path: Path) -> JsonObject:
        """Return the reference to a recording; raises NotARecording if it is still being recorded, Corrupt."""
        with self._lock:
            key = ("recording", path.absolute())
            if key not in self._known:
                with open_recording(path) as recording:
                    if recording.is_live:
                        raise NotARecording(str(path), "it is not complete yet, and cannot be sent to workers")
                    self._requirements[path.absolute()] = requirement_of(recording)
                blocks = {f"{DIRECTORY}/{name}": block for name, block in block_files(path).items()}
                self._known[key] = self._reference({f"{MAIN}.rdbg": path} | blocks, f"{MAIN}.rdbg")
            return self._known[key]

    def requirement(self, path: Path) -> WorkerNeeds:
        """Return what a worker must have for a recording that was referred to."""
        return self._requirements[path.absolute()]

    def file(self, path: Path) -> JsonObject:
        """Return the reference to a file."""
        with self._lock:
            return self._reference({MAIN: path}, MAIN)

    def tree(self, root: Path, names: Iterable[str]) -> JsonObject:
        """Return the reference to a directory with these files of `root`, as they were at first: they may be edited."""
        with self._lock:
            key = ("tree", root, tuple(names))
            if key not in self._known:
                self._known[key] = self._reference({name: root / name for name in key[2]}, "", is_copied=True)
            return self._known[key]

    def data(self, name: str, data: bytes) -> JsonObject:
        """Return the reference to a file with this content."""
        with self._lock:
            pieces = self._add_bytes(data)
            return self._listed([ListedFile(name, len(data), False, "", pieces)], name)

    def repository(self, root: Path, commits: Sequence[str]) -> JsonObject:
        """Return the reference to a pack of these commits, without the history before them."""
        with self._lock:
            key = ("repository", root, tuple(commits))
            if key not in self._known:
                path = self._directory / f"{len(self._known)}.pack"
                facts = pack_of(root, commits, path)
                files = [self._file("facts.json", facts), self._file("commits.pack", path)]
                self._known[key] = self._listed(files, "")
            return self._known[key]

    def read(self, name: str) -> bytes:
        """Return the bytes of a piece. Raises ContentChanged."""
        with self._lock:
            source = self._pieces[name]
        if isinstance(source, bytes):
            return source
        try:
            with source.path.open("rb") as file:
                file.seek(source.offset)
                data = file.read(source.length)
        except OSError as error:
            raise ContentChanged(f"{str(source.path)!r} cannot be read any more: {error.strerror or error}") from None
        if name_of_piece(data) != name:
            raise ContentChanged(f"{str(source.path)!r} changed after it was first read")
        return data

    def size(self, name: str) -> int:
        """Return the length of a piece in bytes."""
        with self._lock:
            source = self._pieces[name]
        return len(source) if isinstance(source, bytes) else source.length

    def _reference(self, files: Mapping[str, Path], main: str, *, is_copied: bool = False) -> JsonObject:
        return self._listed([self._file(name, path, is_copied=is_copied) for name, path in files.items()], main)

    def _listed(self, files: list[ListedFile], main: str) -> JsonObject:
        data = write_manifest(files)
        name = name_of_piece(data)
        self._pieces.setdefault(name, data)
        return {"content": name, "main": main}

    def _file(self, name: str, source: Path | bytes, *, is_copied: bool = False) -> ListedFile:
        if isinstance(source, bytes):
            return ListedFile(name, len(source), False, "", self._add_bytes(source))
        if source.is_symlink():
            return ListedFile(name, 0, False, os.fspath(source.readlink()), ())
        is_executable = bool(source.stat().st_mode & 0o100)
        pieces, size = [], 0
        with source.open("rb") as file:
            while data := file.read(PIECE_SIZE):
                pieces.append(name_of_piece(data))
                self._pieces.setdefault(pieces[-1], data if is_copied else _Source(source.absolute(), size, len(data)))
                size += len(data)
        return ListedFile(name, size, is_executable, "", tuple(pieces))

    def _add_bytes(self, data: bytes) -> tuple[str, ...]:
        parts = [data[start : start + PIECE_SIZE] for start in range(0, len(data), PIECE_SIZE)]
        names = tuple(map(name_of_piece, parts))
        for name, part in zip(names, parts, strict=True):
            self._pieces.setdefault(name, part)
        return names
