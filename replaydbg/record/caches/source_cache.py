"""Installed packages' sources as they were compressed for an earlier recording, in the user's cache directory.

A recording contains them itself; the cache only spares reading and compressing the same 500 files again. Each directory
of sources has one file here. An entry is used if its source has the same inode, size and times as when it was read, and
the file ends in a mark that needs this user's key: nobody else can put text into a recording this way, and a damaged
file is ignored. A failure here costs only time.
"""

from __future__ import annotations

import os
import stat
import struct
import time
from _blake2 import blake2b  # hashlib would import OpenSSL before every recorded program
from contextlib import suppress

from replaydbg.classes import NamedTuple
from replaydbg.record.caches.cache_file import write_whole

_MAGIC = b"RDBGSRC1"
_MARK_SIZE = 32
_HEAD = struct.Struct("<QQQQQ16sII")
"""Device, inode, size, times of change of content and inode in ns; hash of the content; lengths: packed, file name."""
_MOST_OF_FILE = 64 << 20
_MOST = 256 << 20
"""Size of the whole cache in bytes. Beyond it the files that were written least recently are removed."""
_YOUNG = 2_000_000_000
"""Nanoseconds. A source that changed more recently may change again without a new time stamp: it gets no entry."""


class PackedSource(NamedTuple):
    """A source as it is stored in a recording."""

    name: str
    """The hash of its content, in hexadecimal."""
    length: int
    """The length of its content."""
    packed: bytes
    """Its content, compressed."""


_Entry = tuple[tuple[int, ...], PackedSource]
"""The identity of a file, and its content."""


def identity(found: os.stat_result) -> tuple[int, ...]:
    """Return the values that change when a file is written or replaced."""
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


class SourceCache:
    """The cached sources that one recording uses, and those that it adds."""

    def __init__(self, directory: str, key: bytes) -> None:
        """`directory` need not exist; `key` is the user's, see `log/sealed/origin.py`."""
        self._directory = directory
        self._key = key
        self._known: dict[str, dict[str, _Entry]] = {}
        self._changed: set[str] = set()

    def find(self, path: str, found: os.stat_result) -> PackedSource | None:
        """Return the entry of the source at `path`, if `found` is the status of the file from which it was made."""
        folder, _, name = path.rpartition("/")
        entry = self._entries(folder).get(name)
        return entry[1] if entry is not None and entry[0] == identity(found) else None

    def add(self, path: str, found: os.stat_result, source: PackedSource) -> None:
        """Add an entry; `found` is the status of the file, the same before and after it was read."""
        if time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) < _YOUNG:
            return
        folder, _, name = path.rpartition("/")
        self._entries(folder)[name] = (identity(found), source)
        self._changed.add(folder)

    def save(self) -> None:
        """Write what was added."""
        with suppress(OSError):
            if self._changed:
                os.makedirs(self._directory, mode=0o700, exist_ok=True)  # noqa: PTH103
                self._make_room()
            for folder in self._changed:
                self._write(folder)

    def _entries(self, folder: str) -> dict[str, _Entry]:
        known = self._known.get(folder)
        if known is None:
            known = self._known[folder] = _parsed(self._read(folder))
        return known

    def _path(self, folder: str) -> str:
        name = blake2b(os.fsencode(folder), digest_size=16).hexdigest()
        return f"{self._directory}/{name}"

    def _mark(self, folder: str, data: bytes | memoryview) -> bytes:
        made = blake2b(os.fsencode(folder), key=self._key, digest_size=_MARK_SIZE, person=b"replaydbg source")
        made.update(b"\0")
        made.update(data)
        return made.digest()

    def _read(self, folder: str) -> memoryview:
        """Return the entries of a folder as bytes; empty if there are none, or none that can be trusted."""
        nothing = memoryview(b"")
        try:
            fd = os.open(self._path(folder), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return nothing
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_OF_FILE:
                return nothing
            data = memoryview(os.read(fd, found.st_size + 1))
        except OSError:
            return nothing
        finally:
            os.close(fd)
        if len(data) < len(_MAGIC) + _MARK_SIZE or data[: len(_MAGIC)] != _MAGIC:
            return nothing
        is_ours = self._mark(folder, data[:-_MARK_SIZE]) == data[-_MARK_SIZE:]
        return data[len(_MAGIC) : -_MARK_SIZE] if is_ours else nothing

    def _write(self, folder: str) -> None:
        data = _MAGIC + _joined(self._known[folder])
        if len(data) + _MARK_SIZE > _MOST_OF_FILE:
            return
        write_whole(self._path(folder), data + self._mark(folder, data))

    def _make_room(self) -> None:
        with os.scandir(self._directory) as entries:
            files = sorted((entry.stat().st_mtime_ns, entry.stat().st_size, entry.path) for entry in entries)
        total = sum(size for _, size, _ in files)
        for _, size, path in files if total > _MOST else ():
            if total <= _MOST // 2:
                return
            os.unlink(path)  # noqa: PTH108
            total -= size


def _joined(entries: dict[str, _Entry]) -> bytes:
    parts = []
    for name, (file, source) in sorted(entries.items()):
        encoded = os.fsencode(name)
        parts += [
            _HEAD.pack(*file, bytes.fromhex(source.name), len(source.packed), len(encoded)),
            encoded,
            source.packed,
        ]
    return b"".join(parts)


def _parsed(data: memoryview) -> dict[str, _Entry]:
    """Return the entries in `data`, written by a recorder of this user."""
    found: dict[str, _Entry] = {}
    at = 0
    while at < len(data):
        *file, digest, length, name_length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        name = os.fsdecode(bytes(data[at : at + name_length]))
        at += name_length
        found[name] = (tuple(file), PackedSource(digest.hex(), file[2], bytes(data[at : at + length])))
        at += length
    return found
