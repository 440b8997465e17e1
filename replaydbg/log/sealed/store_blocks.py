"""What recordings of a store have in common is stored once, in the directory of blocks within the store.

This is the import world, sources, small files and facts about the machine: all but what happened in the run. A longer
log is shared, too: a program that goes on from a recording, or several that do, have its beginning in common.

Whoever seals a recording holds the directory of blocks by a shared lock until the file is there, and whoever removes
blocks needs it alone: so no block is removed between the moment at which it is found and the one at which it is used.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from replaydbg.log.files import FULL
from replaydbg.log.sealed.block_places import BlockPlaces
from replaydbg.log.sealed.group_blocks import Common, GroupBlocks
from replaydbg.log.sealed.shared import DIRECTORY

_LOCK = ".sealing"


@contextmanager
def common_in(store: Path | None) -> Iterator[Common | None]:
    """Yield how a recording of the store is sealed; None if `store` is: it is to be one file that needs no other.

    Raises OSError if the directory of blocks cannot be made.
    """
    if store is None:
        yield None
        return
    blocks = GroupBlocks(BlockPlaces(store))
    blocks.directory.mkdir(mode=0o700, exist_ok=True)
    with _locked(blocks.directory, fcntl.LOCK_SH):
        yield Common(blocks, has_forked=False, is_whole=True)


@contextmanager
def alone(directory: Path) -> Iterator[bool]:
    """Whether nobody seals a recording with the blocks of a directory; nobody begins to within the block.

    Raises OSError.
    """
    with ExitStack() as stack:
        try:
            is_locked = stack.enter_context(_locked(directory / DIRECTORY, fcntl.LOCK_EX | fcntl.LOCK_NB))
        except OSError as error:
            if error.errno not in FULL:
                raise
            # The disk is full, and there is no file to be locked: nobody has locked it, and nobody else can make it.
            is_locked = True
        yield is_locked


@contextmanager
def _locked(directory: Path, how: int) -> Iterator[bool]:
    fd = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        is_ours = True
        try:
            fcntl.flock(fd, how)
        except OSError as error:
            # There are file systems without locks: then blocks of the last minute stay, as elsewhere.
            is_ours = not isinstance(error, BlockingIOError)
        yield is_ours
    finally:
        with suppress(OSError):
            os.close(fd)
