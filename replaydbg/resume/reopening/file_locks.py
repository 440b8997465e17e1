"""Take file locks again, or find out who holds them."""

from __future__ import annotations

import fcntl
import os
import struct

from replaydbg.resources.kinds import FileLock

_FLOCK = struct.Struct("hhqqi4x")


def obstacle(lock: FileLock) -> str:
    """Return who holds a lock so that it cannot be taken now; empty: nobody, or it cannot be found out.

    A `flock` is taken for a moment: the kernel has no call that only asks.
    """
    if not isinstance(lock.path, str):
        return ""
    try:
        fd = os.open(lock.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return ""  # the row of the file has the reason
    try:
        if lock.kind == "flock":
            take_lock(fd, lock)
            return ""
        holder = find_holder(fd, lock, fcntl.F_GETLK if lock.kind == "lockf" else fcntl.F_OFD_GETLK)
        return f"{holder} holds it" if holder is not None else ""
    except BlockingIOError:
        return "another process holds it"
    except OSError:
        return ""
    finally:
        os.close(fd)


def find_holder(fd: int, lock: FileLock, question: int = fcntl.F_GETLK) -> str | None:
    """Return who holds a range of a file so that it cannot be locked, in words; None: nobody."""
    kind = fcntl.F_WRLCK if lock.is_exclusive else fcntl.F_RDLCK
    asked = _FLOCK.pack(kind, os.SEEK_SET, lock.start, lock.length, 0)
    found, _, _, _, process = _FLOCK.unpack(fcntl.fcntl(fd, question, asked))
    if found == fcntl.F_UNLCK:
        return None
    return f"process {process}" if process > 0 else "another process"


def take_lock(fd: int, lock: FileLock) -> None:
    """Take a lock again. Raises OSError if somebody holds it."""
    if lock.kind == "flock":
        fcntl.flock(fd, (fcntl.LOCK_EX if lock.is_exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        return
    kind = fcntl.F_WRLCK if lock.is_exclusive else fcntl.F_RDLCK
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, os.SEEK_SET, lock.start, lock.length, 0))
