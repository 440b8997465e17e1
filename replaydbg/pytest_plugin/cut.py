"""Cuts a recording out of one that is still being written: from the start to a mark, for a replay of its own."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from replaydbg.events.stops import StopReason
from replaydbg.log.container import Beginning, Writer, split
from replaydbg.log.encode import FORMAT
from replaydbg.log.files import PIECE
from replaydbg.log.logfile import LOG_HEADER, LogHeader, pack_log_header, read_log_header
from replaydbg.log.origin import own_key
from replaydbg.log.shared import STEP, BlockStore
from replaydbg.record.ending import imported, packages, source_of


class Place(NamedTuple):
    """A place in a recording that goes on."""

    log: int
    """Where the event log ends there, in bytes."""
    world: int
    """Where the import world does."""
    events: int
    """How many events there are until then."""
    snapshots: int
    """How many snapshots were taken until then."""


class Sources:
    """The sources that the program has imported, as they were when the importer had just seen them."""

    def __init__(self, live: Path, store: BlockStore) -> None:
        self._world = live / "world"
        self._store = store
        self._seen = LOG_HEADER
        self._names: dict[str, str] = {}
        """Path to the hash of the content, under which it is stored."""
        self._unstored: dict[str, bytes] = {}
        """Path to content: what nothing that is kept has needed until now."""
        self._packages = packages()
        self._told: tuple[int, bytes] | None = None

    def update(self, end: int) -> None:
        """Take in what was imported until there in the import world. Raises OSError."""
        if end <= self._seen:
            return
        with self._world.open("rb") as file:
            file.seek(self._seen)
            data = file.read(end - self._seen)
        self._seen = end
        for path in imported(data):
            content = source_of(path) if path not in self._names and path not in self._unstored else None
            if not content or len(content) > PIECE:
                continue  # that long, it is data; it is in the import world, where a replay takes it from
            self._unstored[path] = content

    def told(self) -> tuple[int, bytes]:
        """Return the last fields of `end.json`: their length, and what a BlockStore returned for them.

        Stores what was taken in until now. Raises OSError.
        """
        while self._unstored:
            path, content = next(iter(self._unstored.items()))
            self._names[path] = self._store.put(content).hex()
            del self._unstored[path]
            self._told = None
        if self._told is None:
            text = json.dumps({"packages": self._packages, "sources": self._names}).encode()[1:]
            self._told = len(text), self._store.entry(text)
        return self._told


class Growing:
    """A file that grows at its end: what stands in it is packed once, however many recordings are cut out of it."""

    def __init__(self, path: Path, store: BlockStore, *, apart: int = 0, is_steady: bool = False) -> None:
        """`apart`: so many bytes at its beginning differ in each recording.

        `is_steady`: it seldom grows from one recording to the next, so that they share its very end, too.
        """
        self._path = str(path)
        self._store = store
        self._apart = apart
        self._pack_end = store.entry if is_steady else store.inline
        self._full: list[bytes] = []
        self._steps: list[bytes] = []
        """Entries of the first block that is not full yet, for each step of it that is."""

    def blocks(self, length: int, head: bytes = b"") -> Iterator[tuple[int, bytes]]:
        """Yield what `Writer.shared` takes, for the first `length` bytes; `head` stands for those apart.

        Raises OSError. The length never falls from one call to the next.
        """
        with open(self._path, "rb") as file:  # noqa: PTH123
            while (len(self._full) + 1) * PIECE <= length:
                start = self._start()
                file.seek(start)
                self._full.append(self._store.entry(file.read((len(self._full) + 1) * PIECE - start)))
                self._steps.clear()
            first = self._store.inline(head) if head else b""
            for stored in self._full:
                yield PIECE, first + stored
                first = b""
            rest = length - len(self._full) * PIECE
            if rest:
                yield rest, first + self._last(file, length)

    def is_there(self) -> bool:
        """Whether there is such a file by now."""
        return os.path.exists(self._path)  # noqa: PTH110 - asked for each test

    def size(self) -> int:
        """How long it is."""
        return os.stat(self._path).st_size  # noqa: PTH116

    def _start(self) -> int:
        return self._apart if not self._full else len(self._full) * PIECE

    def _last(self, file: BinaryIO, length: int) -> bytes:
        at = self._start() + len(self._steps) * STEP
        file.seek(at)
        while at + STEP <= length:
            self._steps.append(self._store.entry(file.read(STEP)))
            at += STEP
        return b"".join(self._steps) + (self._pack_end(file.read(length - at)) if at < length else b"")


class Live:
    """A recording that is still being written."""

    def __init__(self, directory: Path, store: BlockStore) -> None:
        self._store = store
        self._directory = directory
        self.sources = Sources(directory, store)
        self._world = Growing(directory / "world", store, apart=LOG_HEADER, is_steady=True)
        self._log = Growing(directory / "log", store, apart=LOG_HEADER)
        self._content = Growing(directory / "content", store)
        self._beginning: tuple[int, Beginning] | None = None
        """How long the import world was, and what was written of it."""
        self._start_ns: dict[str, int] = {}

    def cut(self, place: Place, target: str, end: dict[str, Any], heap: dict[int, bytes]) -> int:
        """Write the recording `target`: what there is until `place`. `end` becomes its `end.json`, with the sources.

        `heap` are its snapshots, by number. Returns its size. Raises OSError.
        """
        self.sources.update(place.world)
        data = self._sealed(place, end, heap)
        folder, name = os.path.split(target)
        partial = f"{folder}/.{name}.{os.getpid()}.partial"
        fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            with open(fd, "wb", buffering=0) as file:  # noqa: PTH123
                file.write(data)
            os.replace(partial, target)  # noqa: PTH105 - there may be thousands
        except BaseException:
            with suppress(OSError):
                os.unlink(partial)  # noqa: PTH108
            raise
        return len(data)

    def _sealed(self, place: Place, end: dict[str, Any], heap: dict[int, bytes]) -> bytes:
        """Return the recording as it stands in its file."""
        file = io.BytesIO()
        writer = Writer(file, self._begun(place), key=own_key())
        writer.shared("log", self._log.blocks(place.log, self._head("log", place.log, place.events)))
        if self._content.is_there():
            writer.shared("content", self._content.blocks(self._content.size()))
        for number, data in heap.items():
            writer.section(f"heap/{number:06}", split(data), is_compressed=False)
        own = json.dumps(end).encode()[:-1] + b","
        length, steady = self.sources.told()
        writer.shared("end", [(len(own) + length, self._store.inline(own) + steady)])
        writer.finish(syncs=False)
        return file.getvalue()

    def _begun(self, place: Place) -> Beginning:
        """Return the header and the import world. From one test to the next they seldom change."""
        if self._beginning is None or self._beginning[0] != place.world:
            file = io.BytesIO()
            writer = Writer(file, key=own_key())
            header = (self._directory / "header.json").read_bytes()
            writer.shared("header", [(len(header), self._store.entry(header))])
            writer.shared("world", self._world.blocks(place.world, self._head("world", place.world, 0)))
            self._beginning = (place.world, writer.beginning(file.getvalue()))
        return self._beginning[1]

    def _head(self, name: str, length: int, events: int) -> bytes:
        """Return the beginning of a log that ends there."""
        if name not in self._start_ns:
            with (self._directory / name).open("rb") as file:
                header = read_log_header(file.read(LOG_HEADER))
            self._start_ns[name] = header.start_ns if header is not None else 0
        return pack_log_header(LogHeader(FORMAT, StopReason.NOT_STOPPED, length, events, self._start_ns[name]))
