"""Pieces of remote stores that were read before, in the user's cache directory: those used least recently go first.

A piece is checked against its name whenever it is read, so nothing has to be believed of the directory. A failure here
costs only time.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from replaydbg.config import user_cache_directory
from replaydbg.remote.remote_index import LONGEST, Piece, digest_of

MOST = 2 << 30
"""Bytes of all pieces; beyond, those that were used least recently are removed until three quarters are left."""


class FetchedPieces:
    """The pieces in a directory."""

    def __init__(self, directory: Path | None = None, most: int = MOST) -> None:
        """`directory` need not exist (default: one of this user's); `most`: bytes of all pieces."""
        self._directory = user_cache_directory() / "pieces" if directory is None else directory
        self._most = most
        self._size: int | None = None

    def read(self, piece: Piece) -> bytes | None:
        """Return a piece; None: it is not there."""
        path = self._directory / piece.digest
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(fd, "rb") as file:
                data = file.read(LONGEST + 1)
                os.utime(fd)
        except OSError:
            return None
        return data if digest_of(data) == piece.digest else None

    def keep(self, piece: Piece, data: bytes) -> None:
        """Keep a piece, unless the disk is full."""
        with suppress(OSError):
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self._size is None or self._size + len(data) > self._most:
                self._size = self._make_room(self._most - len(data))
            partial = self._directory / f".{piece.digest}.{os.getpid()}.{id(data):x}"
            try:
                partial.write_bytes(data)
                partial.replace(self._directory / piece.digest)
            finally:
                partial.unlink(missing_ok=True)
            self._size += len(data)

    def _make_room(self, most: int) -> int:
        """Remove pieces if there are more than `most` bytes; return how many there are."""
        found = []
        for entry in os.scandir(self._directory):
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                found.append((status.st_mtime, status.st_size, entry.path))
        size = sum(each[1] for each in found)
        if size > most:
            for _, length, path in sorted(found):
                if size <= most * 3 // 4:
                    break
                with suppress(OSError):
                    os.unlink(path)  # noqa: PTH108
                    size -= length
        return size
