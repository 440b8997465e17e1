"""Make shared memory again that nobody has any more: the program has its whole content in a map.

Python's resource tracker removes the name of shared memory when the program is killed.
"""

from __future__ import annotations

import os
from pathlib import Path

from replaydbg.resources.kinds import OpenedMemory, Resources
from replaydbg.resume.plan_rows import CannotReopen

_DIRECTORY = "/dev/shm"
_MODE = 0o600
"""That of `multiprocessing.shared_memory`."""


def shared_path(name: str) -> str:
    """Return the path of named shared memory."""
    return os.path.join(_DIRECTORY, name.lstrip("/"))  # noqa: PTH118


def is_gone(opened: OpenedMemory) -> bool:
    """Whether shared memory has no name any more, although the program has not removed that."""
    return opened.is_shared_memory and not opened.is_unlinked and not os.path.lexists(shared_path(opened.name))


def gone(opened: OpenedMemory) -> str:
    """Return the difference that shared memory is gone."""
    return f"the shared memory {opened.name} is gone"


def whole_maps(opened: OpenedMemory, resources: Resources) -> frozenset[int]:
    """Return the events that made maps through which all of the memory is written when the program goes live."""
    origins = {each.origin for each in opened.handle.descriptors}
    return frozenset(
        each.origin.event
        for each in resources.mappings
        if each.origin in origins
        and each.is_written
        and each.offset == 0
        and isinstance(each.length, int)
        and isinstance(opened.size, int)
        and each.length >= opened.size
    )


def unmapped(resources: Resources, maps: frozenset[int]) -> tuple[str, ...]:
    """Return the differences of memory that was to be made again, although the program has ended its maps."""
    return tuple(
        gone(each)
        for each in resources.opened
        if isinstance(each, OpenedMemory) and is_gone(each) and (events := whole_maps(each, resources))
        if events.isdisjoint(maps)
    )


def make_again(opened: OpenedMemory) -> int:
    """Make shared memory of the recorded size, without a name yet. Raises CannotReopen."""
    try:
        fd = os.open(_DIRECTORY, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, _MODE)
        try:
            os.ftruncate(fd, opened.size if isinstance(opened.size, int) else 0)
        except OSError:
            os.close(fd)
            raise
    except OSError as error:
        raise CannotReopen(f"{opened.name} cannot be made again: {error.strerror}") from error
    return fd


def give_name(fd: int, opened: OpenedMemory) -> None:
    """Give memory that was made again its name, if it has none. Raises CannotReopen if that is in use by now."""
    status = os.fstat(fd)
    if status.st_nlink or status.st_dev != Path(_DIRECTORY).stat().st_dev:  # a hook opened it elsewhere
        return
    directory = os.open(_DIRECTORY, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # With a directory, Python calls linkat(2), which follows the link to the descriptor.
        os.link(f"/proc/self/fd/{fd}", opened.name.lstrip("/"), dst_dir_fd=directory)
    except OSError as error:
        raise CannotReopen(f"the shared memory {opened.name} cannot be made again: {error.strerror}") from error
    finally:
        os.close(directory)
