"""Small files of replaydbg's own beside the recordings of a store.

A store may come from somebody else: no link in it is followed, nothing but regular files is opened, and nothing waits.
A name may come from there, too: one that leads to another directory is refused.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from replaydbg.log.files import FULL

_STEP = 0.01
"""Seconds between two attempts to lock a file."""


class OwnFiles:
    """The files in a directory of the store. Every method raises OSError for a name that is not that of one file."""

    def __init__(self, directory: Path) -> None:
        """The directory need not be there: it is made when something is written."""
        self._path = directory

    def read(self, name: str, limit: int) -> bytes | None:
        """Return a file's bytes; None: it is not there. Raises OSError if it is no file, or longer than `limit`."""
        self._check(name)
        try:
            with self._opened() as directory:
                fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
        except FileNotFoundError:
            return None
        try:
            found = os.fstat(fd)
            data = b""
            if stat.S_ISREG(found.st_mode) and found.st_size <= limit:
                with open(fd, "rb", closefd=False) as file:
                    # Not up to the limit: Python allocates all that is asked for.
                    data = file.read(found.st_size + 1)
        finally:
            os.close(fd)
        if not stat.S_ISREG(found.st_mode) or max(found.st_size, len(data)) > limit:
            raise OSError(f"{str(self._path / name)!r} is not a file, or is too long")
        return data

    def write(self, name: str, data: bytes, *, is_durable: bool = False) -> None:
        """Write a file completely or not at all; `is_durable`: it is on the disk, too. Raises OSError."""
        self._check(name)
        with self._opened(make=True) as directory:
            partial = f".{name}-{os.getpid()}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with suppress(FileNotFoundError):
                os.unlink(partial, dir_fd=directory)  # of a process that was killed
            with os.fdopen(os.open(partial, flags, 0o600, dir_fd=directory), "wb") as file:
                try:
                    file.write(data)
                    file.flush()
                    if is_durable:
                        os.fsync(file.fileno())
                    os.replace(partial, name, src_dir_fd=directory, dst_dir_fd=directory)
                    if is_durable:
                        os.fsync(directory)
                except OSError:
                    os.unlink(partial, dir_fd=directory)
                    raise

    def remove(self, name: str) -> None:
        """Remove a file, if it is there. Raises OSError."""
        self._check(name)
        with suppress(FileNotFoundError), self._opened() as directory:
            os.unlink(name, dir_fd=directory)

    def names(self) -> list[str]:
        """Return the names of the files, sorted; of unfinished ones not. Raises OSError."""
        try:
            with self._opened() as directory:
                return sorted(name for name in os.listdir(directory) if not name.startswith("."))  # noqa: PTH208
        except FileNotFoundError:
            return []

    @contextmanager
    def locked(self, name: str, *, seconds: float = 0.0) -> Iterator[bool]:
        """Hold the lock of this name in the block; yields whether nobody else had it. Raises OSError.

        The lock is waited for up to `seconds`. If there is no file for it, and no room for one on the disk, nobody has
        it: `gc` must be able to make room.
        """
        self._check(name)
        try:
            with self._opened(make=True) as directory:
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
                fd = os.open(name, flags, 0o600, dir_fd=directory)
        except OSError as error:
            if error.errno not in FULL:
                raise
            fd = -1
        if fd < 0:
            yield True
            return
        try:
            yield _lock(fd, time.monotonic() + seconds)
        finally:
            os.close(fd)

    def _check(self, name: str) -> None:
        if not name or name in (".", "..") or "/" in name or "\0" in name:
            raise OSError(errno.EINVAL, "It is not the name of a file", f"{self._path}/{name}")

    @contextmanager
    def _opened(self, *, make: bool = False) -> Iterator[int]:
        try:
            if make and self._path.parent.is_dir():
                with suppress(FileExistsError):
                    self._path.mkdir(mode=0o700)
            fd = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                yield fd
            finally:
                os.close(fd)
        except OSError as error:
            # Users know the store, and not the names of the files in it that are ours.
            if error.errno is not None:  # an error of ours has a text instead
                is_hidden = self._path.name.startswith(".")
                error.filename, error.filename2 = str(self._path.parent if is_hidden else self._path), None
            raise


def _lock(fd: int, until: float) -> bool:
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(_STEP)
        else:
            return True
