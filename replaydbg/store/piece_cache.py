"""A cache of pieces of files, each named by the hash of its bytes, with a limit of its size.

Several processes and threads use it at once. A file is written under another name first, so an entry is complete; it is
compared with its name whenever it is read, so nothing has to be believed of the directory. What was used least recently
is removed first.
"""

from __future__ import annotations

import fcntl
import os
import stat
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from replaydbg.errors import clause

LONGEST = 8 << 20
"""Bytes of a piece of a file."""
_LOCK = "lock"
_DIGITS = frozenset("0123456789abcdef")
_FRACTION = 64
"""The size is counted anew after each such part of the limit: other processes add to it, too."""


def name_of_piece(data: bytes) -> str:
    """Return the name of a piece: its hash, blake2b of 32 bytes, in hexadecimal."""
    return blake2b(data, digest_size=32).hexdigest()


class CacheFull(Exception):
    """There is no room for what is needed; the message is the end of a sentence."""


class CacheEntry(NamedTuple):
    """Something in the cache that can be removed."""

    used: int
    """When it was last used, in ns."""
    size: int
    """In bytes."""
    path: Path


class PieceCache:
    """The cache in a directory."""

    longest = LONGEST
    """Bytes of the longest piece that is read."""

    def __init__(self, directory: Path, limit: int) -> None:
        """Use the directory, which need not exist; `limit` is its largest size in bytes."""
        self.pieces, self.limit = directory, limit
        self._size: int | None = None
        """As it was counted last, with what this process has added since; None: it was not counted yet."""
        self._added = 0

    def read(self, name: str) -> bytes | None:
        """Return a piece; None: it is not there. One that the disk has damaged is removed."""
        path = self.path_of(name)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(fd, "rb") as file:
                data = file.read(self.longest + 1)
                os.utime(fd)
        except OSError:
            return None
        if name_of_piece(data) == name:
            return data
        with suppress(OSError):
            path.unlink()
        return None

    def put(self, pieces: Mapping[str, bytes]) -> None:
        """Add pieces; those with other bytes than their names say are ignored. Raises CacheFull."""
        sound = {name: data for name, data in pieces.items() if name_of_piece(data) == name}
        try:
            with self.locked():
                new = {name: data for name, data in sound.items() if not self.path_of(name).exists()}
                self.make_room(sum(map(len, new.values())), keep=set(pieces))
                for name, data in new.items():
                    self._write(self.path_of(name), data)
        except OSError as error:
            raise self.cannot_write(error) from None

    def path_of(self, name: str) -> Path:
        """Return where a piece is, or would be. Raises CacheFull for what is not the name of one."""
        if len(name) != 64 or not _DIGITS.issuperset(name):
            raise CacheFull(f"{name!r} is not the name of a piece")
        return self.pieces / name[:2] / name

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes and threads from removing or adding entries. Raises OSError."""
        self.pieces.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(self.pieces / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            # There are file systems without locks: then a limit is exceeded at times, and no more.
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def make_room(self, size: int, *, keep: set[str]) -> None:
        """Remove entries until `size` more bytes fit, except those to `keep`; the lock is held. Raises CacheFull."""
        step = self.limit // _FRACTION
        if self._size is None or self._size + size > self.limit or self._added > step:
            self._size, self._added = self._removed_until(self.limit - size, step, keep), 0
        self._size += size
        self._added += size

    def _removed_until(self, most: int, step: int, keep: set[str]) -> int:
        """Remove entries if there are more than `most` bytes, with a little more for the next time; return the rest."""
        entries = sorted(self.entries())
        total = sum(each.size for each in entries)
        if total <= most:
            return total
        for each in entries:
            if total <= most - step:
                break
            if each.path.name not in keep and self.remove(each.path):
                total -= each.size
        if total > most:
            raise CacheFull(self.full_text(total + self.limit - most))
        return total

    def full_text(self, needed: int) -> str:
        """Return that so many bytes are needed at once, as the end of a sentence."""
        return f"the cache {str(self.pieces)!r} is full: {needed:,} bytes are needed, and the limit is {self.limit:,}"

    def entries(self) -> Iterator[CacheEntry]:
        """Yield all entries that count, and can be removed."""
        for path in self.pieces.rglob("*"):
            with suppress(OSError):
                about = path.lstat()
                if not stat.S_ISDIR(about.st_mode) and path.name != _LOCK:
                    yield CacheEntry(about.st_mtime_ns, about.st_size, path)

    def remove(self, path: Path) -> bool:
        """Remove an entry unless it is in use; return whether it is gone."""
        try:
            path.unlink()
        except OSError:
            return False
        return True

    def cannot_write(self, error: OSError) -> CacheFull:
        """Return the error for one of the disk."""
        return CacheFull(f"the cache {str(self.pieces)!r} cannot be written: {clause(error.strerror or str(error))}")

    def _write(self, path: Path, data: bytes) -> None:
        partial = path.with_name(f".{uuid.uuid4().hex}")
        try:
            path.parent.mkdir(exist_ok=True, mode=0o700)
            partial.write_bytes(data)
            partial.replace(path)
        finally:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
