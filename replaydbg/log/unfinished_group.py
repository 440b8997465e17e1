"""Groups that are being made: `group.json` is written last, when everything of the first processes is there.

Until then, who makes one holds a lock of its directory, so that nobody takes it for what a killed process has left.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from replaydbg.errors import UnfinishedGroup
from replaydbg.log.group import FACTS


def is_finished(directory: Path) -> bool:
    """Whether the directory of a group has the list of its processes."""
    return os.path.lexists(directory / FACTS)


def check_finished(directory: Path, name: str) -> None:
    """Raise UnfinishedGroup if the group `name` in a directory is not finished."""
    if not is_finished(directory):
        raise UnfinishedGroup(name)


def hold_while_made(directory: Path) -> int:
    """Return a descriptor that holds a directory as one that is being made, until it is closed. Raises OSError."""
    import fcntl  # a recording that is not in a group does not need it

    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Not the number of a standard stream that is closed, and that the program must find closed.
        fd = fcntl.fcntl(opened, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(opened)
    with suppress(OSError):  # a file system without locks
        fcntl.flock(fd, fcntl.LOCK_SH)
    return fd


def is_being_made(directory: Path) -> bool:
    """Whether a process is making a group in a directory. False for anything else."""
    import fcntl

    try:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system without locks
    finally:
        os.close(fd)
    return False
