"""Store data that recordings of a group have in common once, in the directory of blocks within the group's directory.

This is the import world, the sources, the content of files, and what a forked child has in common with its parent. The
files are those of `log/sealed/shared.py`. Several processes write them at once, each while it seals a recording; a
recording is marked as complete only when all blocks that it needs are on the disk.

A group of a store has blocks of its own, too, so that it can be copied, sent and removed as a whole. What the store has
already becomes a further name of the same file (a hard link), and the group's new blocks get a name in the store.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from replaydbg.classes import NamedTuple
from replaydbg.log.allowance import load_json
from replaydbg.log.entries.logfile import LOG_HEADER
from replaydbg.log.files import PIECE
from replaydbg.log.sealed.block_places import BlockPlaces
from replaydbg.log.sealed.shared import DIRECTORY, STEP, BlockStore, load_source, names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.log.group import GroupProcess

SMALL = 1 << 10
"""Bytes up to which something stays in each recording: a file takes four times as many on the disk."""

_YOUNG = 60.0
"""Seconds in which a block that another process wrote may not be on the disk yet. After them that process has ended,
or has waited for the disk.
"""
_THREADS = 8


class Entries(NamedTuple):
    """The stored bytes of a shared block."""

    stored: bytes
    size: int
    """Their length, with that of the files that the section did not need before."""


class GroupBlocks(BlockStore):
    """The blocks of a group, for one recording that is sealed."""

    def __init__(self, places: BlockPlaces, synced: set[str] | None = None) -> None:
        """`synced` are the paths of blocks that this process knows to be on the disk."""
        super().__init__(places.own)
        self._beside = places.store / DIRECTORY if places.store is not None else None
        """The blocks of the store."""
        self._synced = synced if synced is not None else set()
        self._sizes: dict[str, int] = {}
        self._young: list[str] = []

    def size_of(self, name: str) -> int:
        """Return the size of the file of a block that was put."""
        return self._sizes[name]

    def put_packed(self, name: str, packed: bytes) -> None:
        """Store bytes that are compressed already, as by `compressor`; `name` is the hash of the plain ones."""
        self._put(name, lambda: packed)

    def _put(self, text: str, packed: Callable[[], bytes]) -> None:
        if text in self._sizes:
            return
        path = f"{self.directory}/{text}"
        found = None
        if load_source(text, self.directory) is not None:  # one that was damaged would be that of each recording
            with suppress(FileNotFoundError):
                found = os.stat(path)  # noqa: PTH116
                os.utime(path)
        if found is None:
            if self._beside is None or not self._link(self._beside, text):
                self._write(text, packed())
                self._name_in_store(text)
            self._sizes[text] = os.stat(path).st_size  # noqa: PTH116
            self._young.append(path)
        else:
            self._sizes[text] = found.st_size
            if found.st_mtime > time.time() - _YOUNG and path not in self._synced:
                self._young.append(path)

    def _link(self, store: Path, text: str) -> bool:
        """Let a block of the store be one of the group; whether it is: it has its content, and could get the name."""
        if load_source(text, store) is None:
            return False
        with suppress(OSError):  # the file system has no links, or no more of this file
            self._make_directory()
            try:
                os.link(f"{store}/{text}", f"{self.directory}/{text}", follow_symlinks=False)
            except FileExistsError:  # a damaged one
                name_block(store / text, self.directory)
            os.utime(f"{self.directory}/{text}")  # the others need it for another while
            return True
        return False

    def _name_in_store(self, text: str) -> None:
        """Let other recordings of the store have a block that was written for the group."""
        if self._beside is not None:
            with suppress(OSError):  # then they have their own
                self._beside.mkdir(mode=0o700, exist_ok=True)
                name_block(self.directory / text, self._beside)

    def _make_directory(self) -> None:
        # Without its parent: if somebody has removed the group, it must not come back.
        self.directory.mkdir(exist_ok=True, mode=0o700)

    def sync(self) -> None:
        """Wait until all blocks that were put are on the disk. Raises OSError."""
        # All are on their way to the disk before the first is waited for, and several are waited for at once: one
        # write of the file system's journal is for all of them.
        for path in self._young:
            _with_open(path, _begin_to_write)
        _at_once([partial(_with_open, path, os.fsync) for path in self._young])
        if self._young:
            _with_open(str(self.directory), os.fsync)
        self._synced.update(self._young)
        self._young.clear()


def name_block(block: Path, directory: Path) -> None:
    """Give the file of a block a further name in another directory, in place of a damaged one. Raises OSError."""
    partial = directory / f".{block.name}.{os.getpid()}"
    os.link(block, partial, follow_symlinks=False)
    try:
        partial.replace(directory / block.name)
    finally:
        partial.unlink(missing_ok=True)  # a file that takes the place of itself keeps both names


def share_with_store(group: Path, store: Path) -> None:
    """Let a group that comes into a store share blocks with it; what has no room or no links stays as it is."""
    ours, theirs = group / DIRECTORY, store / DIRECTORY
    with suppress(OSError):
        theirs.mkdir(mode=0o700, exist_ok=True)
        for block in list(ours.iterdir()) if ours.is_dir() else ():
            is_there = load_source(block.name, theirs) is not None
            name_block(*(theirs / block.name, ours) if is_there else (block, theirs))


def _begin_to_write(fd: int) -> None:
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def _with_open(path: str, act: Callable[[int], None]) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        act(fd)
    finally:
        os.close(fd)


def _at_once(acts: list[Callable[[], None]]) -> None:
    """Call all of them in a few threads. Raises the OSError of one that failed."""
    # Imported here: only this needs it.
    from threading import Thread

    errors: list[OSError] = []

    def work(some: list[Callable[[], None]]) -> None:
        try:
            for act in some:
                act()
        except OSError as error:
            errors.append(error)

    threads = [Thread(target=work, args=(acts[start::_THREADS],)) for start in range(min(_THREADS, len(acts)))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if errors:
        raise errors[0]


class CommonPart:
    """Stores the part of a section that other recordings of the group have, too: its beginning, or all of it."""

    def __init__(
        self,
        blocks: GroupBlocks,
        *,
        apart: int = 0,
        until: int | None = None,
        is_steady: bool = False,
        is_whole: bool = False,
        compress: Callable[[bytes], bytes] | None = None,
    ) -> None:
        """`apart`: number of bytes at its beginning that differ in each recording; `until`: where the part ends.

        `is_steady`: most recordings have the very end of the section, too; `is_whole`: only whole pieces are common.
        `compress`: see `BlockStore.put`.
        """
        self._blocks = blocks
        self._apart = apart
        self._until = until
        self._is_steady = is_steady
        self._is_whole = is_whole
        self._compress = compress
        self._counted: set[str] = set()

    def entries(self, offset: int, raw: bytes) -> Entries | None:
        """Store what is common of the piece at `offset` of the section; None: nothing is."""
        if self._is_whole and len(raw) < PIECE:
            return None
        start = self._apart if offset == 0 else 0
        end = len(raw) if self._until is None else min(len(raw), self._until - offset)
        stored = self._blocks.inline(raw[:start]) if start else b""
        names: set[str] = set()
        for after in self._ends(start, end):
            entry = self._blocks.entry(raw[start:after], self._compress)
            names.update(names_in(entry))
            stored += entry
            start = after
        if not names:
            return None
        if start < len(raw):
            stored += self._blocks.inline(raw[start:])
        size = len(stored) + sum(map(self._blocks.size_of, names - self._counted))
        self._counted |= names
        return Entries(stored, size)

    def _ends(self, start: int, end: int) -> Iterator[int]:
        """Yield where each part that becomes a file ends, in a piece whose bytes from `start` to `end` are common.

        What is less than a whole piece is cut into steps: another recording may have only the first of them.
        """
        if end == PIECE:
            yield end
            return
        while start + STEP <= end:
            start += STEP
            yield start
        if self._is_steady and end - start > SMALL:
            yield end


class Common(NamedTuple):
    """Orders for sealing one of several recordings of a group, or of a store."""

    blocks: GroupBlocks
    has_forked: bool
    """Whether it has children whose log is a branch of its own."""
    is_whole: bool = False
    """Whether whole pieces of its log are common: those of a program that goes on from another recording."""

    def parts(
        self, before: Mapping[str, int], *, has_large_content: bool, compress_world: Callable[[bytes], bytes] | None
    ) -> dict[str, CommonPart]:
        """Return the common part of each section.

        `before` has the sizes of the sections that the parent of a forked child wrote. Large content stays in the
        recording, where a replay maps it: only what the parent wrote is common then.
        """
        if self.is_whole:
            log = CommonPart(self.blocks, apart=LOG_HEADER, is_whole=True)
        else:
            log = CommonPart(self.blocks, apart=LOG_HEADER, until=None if self.has_forked else before.get("log", 0))
        return {
            "world": CommonPart(self.blocks, apart=LOG_HEADER, is_steady=True, compress=compress_world),
            "log": log,
            "content": CommonPart(
                self.blocks, until=before.get("content", 0) if has_large_content else None, is_steady=True
            ),
        }

    def has_stored(self, name: str, length: int, packed: bytes) -> bool:
        """Store a source of `length` bytes, compressed, under the hash `name`; False: it belongs into the recording."""
        if length > PIECE or len(packed) <= SMALL:
            return False
        self.blocks.put_packed(name, packed)
        return True

    def json(self, data: bytes, keys: Iterable[str]) -> bytes | None:
        """Return the entries of a JSON text, in which the values of `keys` are common; None if nothing is."""
        try:
            fields = load_json(data) if len(data) <= PIECE else {}
        except ValueError:
            return None
        if not isinstance(fields, dict):
            return None
        texts = [json.dumps(fields[key]).encode() for key in keys if key in fields]
        stored = b""
        at = 0
        for start, text in sorted((data.find(text), text) for text in texts):
            if start >= at and len(text) > SMALL:
                stored += self.blocks.inline(data[at:start]) + self.blocks.entry(text)
                at = start + len(text)
        return stored + self.blocks.inline(data[at:]) if at else None


def common_of(
    places: BlockPlaces, number: int, rows: Iterable[GroupProcess], synced: set[str] | None = None
) -> Common | None:
    """Return how to seal the recording of process `number` of a group; None: no other process of it is recorded."""
    others = [each for each in rows if each.recording and each.number != number]
    if not others:
        return None
    has_forked = any(each.how == "fork" and each.parent == number for each in others)
    return Common(GroupBlocks(places, synced), has_forked)
