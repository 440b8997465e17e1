"""Heap snapshots read from the file that a process of the engine sends."""

from __future__ import annotations

import fcntl
import mmap
import os
import stat

from replaydbg.errors import Corrupt, ForgedMessage
from replaydbg.events import linux
from replaydbg.heap.limits import Limits
from replaydbg.heap.snapshot import Snapshot
from replaydbg.heap.storage.raw_snapshot import read_raw

_SEALS = linux.F_SEAL_SHRINK | linux.F_SEAL_GROW | linux.F_SEAL_WRITE
_PER_NODE, _PER_EDGE = 40, 12
_ALWAYS = 64 << 20
"""Bytes for the names of types, roots and files, which have no number of their own."""

_TIMES = 8
"""The largest ratio of a snapshot to the program's memory: the smallest object has 16 bytes, and 40 here."""


def most_bytes(limits: Limits, resident: int) -> int:
    """Return how long the file of a snapshot within `limits` may be, of a process with so much memory (0: unknown)."""
    by_limits = limits.nodes * (_PER_NODE + 4 * limits.text) + limits.edges * _PER_EDGE
    return _ALWAYS + min(by_limits, _TIMES * resident or 1 << 29)


def read_picture(fd: int, most: int, *, run: str) -> Snapshot:
    """Return the snapshot in the file `fd`, of at most `most` bytes, and close it. Raises ForgedMessage."""
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or not 0 < found.st_size <= most:
            raise ForgedMessage("it sent a snapshot that is not a file, or is too long")
        return _sealed(fd, run) if _seal(fd) else _copied(fd, found.st_size, run)
    except Corrupt as error:
        raise ForgedMessage(f"it sent a malformed snapshot: {error.reason}") from None
    finally:
        os.close(fd)


def _seal(fd: int) -> bool:
    """Whether the file can no longer change: then it can be read in place."""
    try:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
        return fcntl.fcntl(fd, fcntl.F_GET_SEALS) & _SEALS == _SEALS
    except OSError:  # it is not a memory file, or is still open for writing elsewhere
        return False


def _sealed(fd: int, run: str) -> Snapshot:
    # Not closed here: an error about its content still holds views of it.
    return read_raw(memoryview(mmap.mmap(fd, 0, prot=mmap.PROT_READ)), run=run)


def _copied(fd: int, size: int, run: str) -> Snapshot:
    # A file that became shorter while it is mapped would kill this process.
    data = bytearray(size)
    done = 0
    while done < size:
        piece = os.pread(fd, min(size - done, 1 << 20), done)
        if not piece:
            raise ForgedMessage("it truncated the snapshot that it sent")
        data[done : done + len(piece)] = piece
        done += len(piece)
    return read_raw(data, run=run)
