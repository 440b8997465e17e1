"""Cut recordings out of one that is still being written: each from its start to a position."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Protocol

from replaydbg.events.stops import StopReason
from replaydbg.log.coding.encode import FORMAT
from replaydbg.log.container import Beginning, Writer, split
from replaydbg.log.edit.position import LogPosition
from replaydbg.log.entries.logfile import LOG_HEADER, LogHeader, pack_log_header, read_log_header
from replaydbg.log.files import PIECE, forget_signature
from replaydbg.log.sealed.origin import own_key
from replaydbg.log.sealed.shared import STEP, BlockStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.log.edit.growing_secrets import GrowingSecrets

HeapSections = Mapping[int, bytes | tuple[int, bytes]]
"""Snapshots by number: the file of each, or its length and the name that a BlockStore returned for it."""


class EndFields(Protocol):
    """Fields of `end.json` that recordings cut out of one run have in common."""

    def update(self, end: int) -> None:
        """Add what the import world has up to byte `end`. Raises OSError."""

    def hidden_sources(self) -> Mapping[str, bytes]:
        """Return the sources that have secrets, by name: they are in each recording, where they are masked."""

    def end_fields(self) -> tuple[int, bytes]:
        """Return the length of the fields as JSON, and the names that a BlockStore returned for them.

        Raises OSError.
        """


class GrowingFile:
    """A file that grows at its end: its content is packed once, however many recordings are cut out of it."""

    def __init__(
        self,
        path: Path,
        store: BlockStore,
        *,
        apart: int = 0,
        is_steady: bool = False,
        secrets: GrowingSecrets | None = None,
    ) -> None:
        """`apart`: number of bytes at its beginning that differ in each recording.

        `is_steady`: it seldom grows from one recording to the next, so that they share its very end, too. `secrets` are
        masked.
        """
        self._path = str(path)
        self._name = path.name
        self._secrets = secrets
        self._store = store
        self._apart = apart
        self._pack_end = store.entry if is_steady else store.inline
        self._full: list[bytes] = []
        self._steps: list[bytes] = []
        """The entry of the first block that is not full yet, for each full step of it."""

    def blocks(self, length: int, head: bytes = b"") -> Iterator[tuple[int, bytes]]:
        """Yield the blocks for `Writer.shared` of the first `length` bytes; `head` replaces the first `apart` ones.

        Raises OSError. The length never decreases from one call to the next.
        """
        with open(self._path, "rb") as file:  # noqa: PTH123
            while (len(self._full) + 1) * PIECE <= length:
                start = self._start()
                self._full.append(self._store.entry(self._read(file, start, (len(self._full) + 1) * PIECE)))
                self._steps.clear()
            first = self._store.inline(head) if head else b""
            for stored in self._full:
                yield PIECE, first + stored
                first = b""
            rest = length - len(self._full) * PIECE
            if rest:
                yield rest, first + self._last(file, length)

    def is_there(self) -> bool:
        """Whether the file exists by now."""
        return os.path.exists(self._path)  # noqa: PTH110 - asked for each test

    def size(self) -> int:
        """Return its length."""
        return os.stat(self._path).st_size  # noqa: PTH116

    def _start(self) -> int:
        return self._apart if not self._full else len(self._full) * PIECE

    def _last(self, file: BinaryIO, length: int) -> bytes:
        at = self._start() + len(self._steps) * STEP
        while at + STEP <= length:
            self._steps.append(self._store.entry(self._read(file, at, at + STEP)))
            at += STEP
        return b"".join(self._steps) + (self._pack_end(self._read(file, at, length)) if at < length else b"")

    def _read(self, file: BinaryIO, start: int, end: int) -> bytes:
        if self._secrets is None:
            file.seek(start)
            return file.read(end - start)
        margin = self._secrets.margin
        at = max(start - margin, 0)
        file.seek(at)
        return self._secrets.hide(self._name, file.read(end + margin - at), at, start, end)


def _up_to(path: Path, end: int, start: int) -> Iterator[bytes]:
    """Yield the bytes of a file from `start` to `end`; none if it does not exist."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        file.seek(start)
        while end > start and (piece := file.read(min(end - start, PIECE))):
            yield piece
            start += len(piece)


class LiveRecording:
    """A recording that is still being written."""

    def __init__(
        self, directory: Path, store: BlockStore, sources: EndFields, secrets: GrowingSecrets | None = None
    ) -> None:
        """`secrets` are masked; None: none are."""
        self._store = store
        self._directory = directory
        self.sources = sources
        self._secrets = secrets
        self._world = GrowingFile(directory / "world", store, apart=LOG_HEADER, is_steady=True, secrets=secrets)
        self._log = GrowingFile(directory / "log", store, apart=LOG_HEADER, secrets=secrets)
        self._content = GrowingFile(directory / "content", store, secrets=secrets)
        self._beginning: tuple[int, Beginning] | None = None
        """The length of the import world, and the sections written for it."""
        self._header_size = 0
        self._known = {"log": 0, "content": 0}
        """How many bytes of each were searched for secrets."""
        self._hidden: dict[str, tuple[tuple[bytes, ...], bytes]] = {}
        """Of each source with secrets, the words that were masked in it, and the name that the BlockStore returned."""
        self._start_ns: dict[str, int] = {}
        self._key = own_key()

    def learn(self, place: LogPosition) -> None:
        """Find the secrets of the run up to a position, before anything of it is packed. Raises OSError.

        All that is there by now is read: what other tests have written meanwhile is not read again for each of them.
        """
        if self._secrets is None:
            return
        self.sources.update(place.world)
        if place.log <= self._known["log"]:
            return
        content = self._directory / "content"
        with (self._directory / "log").open("rb") as file:
            header = read_log_header(file.read(LOG_HEADER))
        log = max(place.log, header.committed if header is not None else 0)
        # After the log: the contents to which it refers are there.
        known = {"log": log, "content": content.stat().st_size if self._content.is_there() else 0}
        self._secrets.learn_from(self._directory / "log", log)
        if known["content"]:
            self._secrets.learn_from(content, known["content"])
        self._secrets.learn_pieces(lambda name, start=0: _up_to(self._directory / name, known[name], start), known)
        self._known = known

    def cut(
        self, place: LogPosition, target: str, end: Mapping[str, object], heap: HeapSections, *, transfers: bool = False
    ) -> int:
        """Write the recording `target`: everything up to `place`. `end` becomes its `end.json`, with the sources.

        `heap` are its snapshots, by number; `transfers`: whether it has what was sent and received. Returns its size.
        Raises OSError.
        """
        self.sources.update(place.world)
        sent = self._transfers(place) if transfers else b""
        data = self._sealed(place, end, heap, sent)
        folder, name = os.path.split(target)
        partial = f"{folder}/.{name}.{os.getpid()}.partial"
        fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            with open(fd, "wb", buffering=0) as file:  # noqa: PTH123
                file.write(data)
            os.replace(partial, target)  # noqa: PTH105 - there may be thousands
            forget_signature(Path(target))
        except BaseException:
            with suppress(OSError):
                os.unlink(partial)  # noqa: PTH108
            raise
        return len(data)

    def _transfers(self, place: LogPosition) -> bytes:
        # Imported here: only groups of processes have it.
        from replaydbg.log.cut_transfers import transfers_before

        try:
            return transfers_before((self._directory / "transfers").read_bytes(), place.events)
        except FileNotFoundError:
            return b""

    def _sealed(self, place: LogPosition, end: Mapping[str, object], heap: HeapSections, transfers: bytes) -> bytes:
        """Return the recording as the bytes of its file."""
        file = io.BytesIO()
        log = list(self._log.blocks(place.log, self._head("log", place.log, place.events)))
        # Where secrets are masked, nothing is packed that was not searched for them.
        has_content = self._secrets is None and self._content.is_there()
        size = self._content.size() if has_content else self._known["content"]
        content = list(self._content.blocks(size)) if size else []
        length, steady = self.sources.end_fields()
        begun = self._begun(place)
        sources = self._hidden_sources()
        hiding = None
        if self._secrets is not None:
            lengths = {"log": place.log, "content": size, "world": place.world, "header": self._header_size}
            hiding = self._secrets.hiding(lengths | {name: length for name, (length, _) in sources.items()})
        writer = Writer(file, begun, key=self._key, hiding=hiding)
        writer.shared("log", log)
        writer.shared("content", content)
        writer.section("transfers", split(transfers))
        for name, block in sources.items():
            writer.shared(name, [block])
        for number, data in heap.items():
            if isinstance(data, bytes):
                writer.section(f"heap/{number:06}", split(data), is_compressed=False)
            else:
                writer.shared(f"heap/{number:06}", [data])
        own = writer.masked("end", json.dumps(end).encode()[:-1] + b",")
        writer.shared("end", [(len(own) + length, self._store.inline(own) + steady)])
        writer.finish(syncs=False)
        return file.getvalue()

    def _hidden_sources(self) -> dict[str, tuple[int, bytes]]:
        """Return the sources with secrets, by section: the length of each, and the name that the BlockStore returned.

        Each is masked again when there are more secrets.
        """
        found = {}
        for name, source in self.sources.hidden_sources().items():
            section = f"source/{name}"
            words, stored = self._hidden.get(section, (None, b""))
            if self._secrets is not None and self._secrets.words is not words:
                stored = self._store.entry(self._secrets.hide(section, source, 0, 0, len(source)))
                self._hidden[section] = self._secrets.words, stored
            found[section] = len(source), stored
        return found

    def _begun(self, place: LogPosition) -> Beginning:
        """Return the header and the import world. From one test to the next they seldom change."""
        if self._beginning is None or self._beginning[0] != place.world:
            file = io.BytesIO()
            writer = Writer(file, key=self._key)
            header = (self._directory / "header.json").read_bytes()
            self._header_size = len(header)
            if self._secrets is not None:
                header = self._secrets.hide("header", header, 0, 0, len(header))
            writer.shared("header", [(len(header), self._store.entry(header))])
            writer.shared("world", self._world.blocks(place.world, self._head("world", place.world, 0)))
            self._beginning = (place.world, writer.beginning(file.getvalue()))
        return self._beginning[1]

    def _head(self, name: str, length: int, events: int) -> bytes:
        """Return the header of a log that ends there."""
        if name not in self._start_ns:
            with (self._directory / name).open("rb") as file:
                header = read_log_header(file.read(LOG_HEADER))
            self._start_ns[name] = header.start_ns if header is not None else 0
        return pack_log_header(LogHeader(FORMAT, StopReason.NOT_STOPPED, length, events, self._start_ns[name]))
