"""Blocks of the import world as they were compressed for an earlier recording, in the user's cache directory.

Whoever records a program again imports the same byte code again: nearly all of its blocks of 1 MiB are then equal to
those of the recording before. A block is found by a keyed hash of all its bytes, and its file ends in a mark that needs
this user's key, so nobody else can put bytes into a recording this way, and a damaged file is ignored. A failure here
costs only time.

A block that was met once has an empty file; the second recording fills it. A program that is changed before each
recording would otherwise write blocks that nobody ever uses.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from replaydbg.log.entries.logfile import LOG_HEADER
from replaydbg.log.files import PIECE
from replaydbg.log.sealed.origin import MARK_SIZE, OriginMarker
from replaydbg.log.sealed.shared import compressor
from replaydbg.record.caches.cache_file import write_whole

_MOST = 256 << 20
"""Size of all files in bytes, and their number: beyond either, those that were used least recently are removed until
half of it is left.
"""
_MOST_FILES = 1024
_NAME, _PACKED = b"replaydbg block", b"replaydbg packed"
"""The purposes of the two hashes. Neither is ever the mark of a recording, whatever a recorded program reads."""


class BlockCache:
    """The compressed blocks in a directory."""

    def __init__(self, directory: str, key: bytes) -> None:
        """`directory` need not exist; `key` is the user's, see `log/sealed/origin.py`."""
        self._directory = directory
        self._key = key
        self._compress = compressor()
        self._has_room = False

    def compress(self, raw: bytes) -> bytes:
        """Return `raw` compressed, as by `compressor`."""
        hashed = OriginMarker(self._key, is_long=True, person=_NAME)
        # Others end with the log, and so are different in each recording; the first of a group is without its header.
        # Hashing pays only if it is the fast hash.
        if len(raw) < PIECE - LOG_HEADER or not hashed.is_long:
            return self._compress(raw)
        hashed.add(raw)
        name = hashed.mark()
        path = f"{self._directory}/{name[:16].hex()}"
        packed, is_known = self._read(path, name)
        if packed is None:
            packed = self._compress(raw)
            with suppress(OSError):
                self._add(path, self._mark(name, packed) + packed if is_known else b"")
        return packed

    def _mark(self, name: bytes, packed: bytes) -> bytes:
        marker = OriginMarker(self._key, is_long=True, person=_PACKED)
        marker.add(name)
        marker.add(packed)
        return marker.mark()

    def _read(self, path: str, name: bytes) -> tuple[bytes | None, bool]:
        """Return the compressed block, None if there is none that can be trusted, and whether it has a file."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None, False
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or not MARK_SIZE < found.st_size <= 2 * PIECE:
                return None, True
            data = os.read(fd, found.st_size)
            packed = data[MARK_SIZE:]
            if data[:MARK_SIZE] != self._mark(name, packed):
                return None, True
            os.utime(fd)
        except OSError:
            return None, True
        finally:
            os.close(fd)
        return packed, True

    def _add(self, path: str, data: bytes) -> None:
        if not self._has_room:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)  # noqa: PTH103
            self._make_room()
            self._has_room = True
        write_whole(path, data)

    def _make_room(self) -> None:
        with os.scandir(self._directory) as entries:
            files = sorted((entry.stat().st_mtime_ns, entry.stat().st_size, entry.path) for entry in entries)
        total, left = sum(size for _, size, _ in files), len(files)
        if total <= _MOST and left <= _MOST_FILES:
            return
        for _, size, path in files:
            if total <= _MOST // 2 and left <= _MOST_FILES // 2:
                return
            with suppress(FileNotFoundError):  # another recorder makes room, too
                os.unlink(path)  # noqa: PTH108
            total -= size
            left -= 1
