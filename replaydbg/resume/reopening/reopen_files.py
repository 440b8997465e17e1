"""Rules for what has a path: regular files, directories, devices, fifos and terminals."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TypeGuard

from replaydbg.classes import replace
from replaydbg.resources.kinds import (
    Handle,
    OpenedDirectory,
    OpenedFile,
    OpenedMemory,
    OpenedPipe,
    OpenedTerminal,
    OpenResource,
    Resources,
    Unknown,
)
from replaydbg.resume.plan_rows import CannotReopen, Fate, PlanRow
from replaydbg.resume.reopening.remade_memory import gone, is_gone, make_again, shared_path
from replaydbg.resume.written import ends_with_last_write

_ONCE = os.O_TRUNC | os.O_EXCL | os.O_CREAT
"""Flags of the first opening that must have no effect at the second one."""
_NO_NAME = "it has no name in the file system"


def plan_file(opened: OpenedFile) -> PlanRow:
    """Decide a file with a path."""
    numbers = opened.handle.numbers
    shown = os.fsdecode(opened.path)
    if isinstance(opened.handle.flags, int) and opened.handle.flags & os.O_TMPFILE == os.O_TMPFILE:
        return PlanRow("files", Fate.REFUSED, f"an unnamed file in {shown}", _NO_NAME, numbers, opened=opened)
    if isinstance(opened.absolute, Unknown):
        return PlanRow("files", Fate.REFUSED, shown, opened.absolute.reason, numbers, opened=opened)
    if opened.is_deleted:
        return PlanRow("files", Fate.REFUSED, shown, _NO_NAME, numbers, opened=opened)
    if isinstance(opened.handle.flags, Unknown):
        return PlanRow("files", Fate.REFUSED, shown, opened.handle.flags.reason, numbers, opened=opened)
    if _is_directory(opened):
        return PlanRow("directories", Fate.REOPENED, opened.absolute, "", numbers, opened=opened)
    if opened.is_regular is False:
        differences = () if os.path.lexists(opened.absolute) else (f"{opened.absolute} is gone",)
        return PlanRow("devices", Fate.REOPENED, opened.absolute, "", numbers, differences, opened)
    # What is always written at the end needs no offset.
    at_end = isinstance(opened.offset, Unknown) and opened.handle.flags & os.O_APPEND
    if isinstance(opened.offset, Unknown) and not at_end:
        return PlanRow("files", Fate.REFUSED, opened.absolute, opened.offset.reason, numbers, opened=opened)
    text = f"{opened.absolute} at {'its end' if at_end else f'byte {opened.offset:,}'}"
    return PlanRow("files", Fate.REOPENED, text, "", numbers, tuple(_differences(opened.absolute)), opened)


def _is_directory(opened: OpenedFile) -> bool:
    """Whether it is a directory that was opened without `O_DIRECTORY`: the log need not show that it is one."""
    flags = opened.handle.flags
    reads_only = isinstance(flags, int) and flags & os.O_ACCMODE == os.O_RDONLY
    is_known = isinstance(opened.is_regular, bool) or not isinstance(opened.absolute, str)
    return reads_only and not is_known and os.path.isdir(str(opened.absolute))  # noqa: PTH112


def _differences(path: str) -> list[str]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    except FileNotFoundError:
        return [f"{path} is gone"]
    except PermissionError:  # it may be open for writing only
        return []
    except OSError as error:
        return [f"{path} cannot be opened: {error.strerror}"]
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return [f"{path} is no longer a regular file"]
        return []
    finally:
        os.close(fd)


def grown(opened: OpenedFile) -> str | None:
    """Return the difference if a file that the program writes has more after its recorded end; None: it has not."""
    flags = opened.handle.flags
    if isinstance(opened.absolute, Unknown) or opened.is_regular is False or opened.is_deleted:
        return None
    if isinstance(flags, Unknown) or flags & os.O_ACCMODE == os.O_RDONLY:
        return None
    if isinstance(opened.size, Unknown):
        is_changed = flags & os.O_APPEND and not ends_with_last_write(opened)
        return f"{opened.absolute} does not end with what was written last" if is_changed else None
    try:
        size = os.stat(opened.absolute).st_size  # noqa: PTH116
    except OSError:
        return None
    return f"{opened.absolute} is longer: {size:,} bytes, recorded {opened.size:,}" if size > opened.size else None


def reopen_file(opened: OpenedFile, *, creates: bool) -> int:
    """Open a file as it was opened, at its offset; `creates`: an empty one if it is gone. Raises CannotReopen."""
    assert isinstance(opened.absolute, str)
    if _is_directory(opened):
        return _open(opened.absolute, opened.handle, os.O_DIRECTORY)
    fd = _open(opened.absolute, opened.handle, os.O_CREAT if creates and opened.is_regular is not False else 0)
    if isinstance(opened.offset, int) and opened.is_regular is not False:
        os.lseek(fd, opened.offset, os.SEEK_SET)
    return fd


def plan_directory(opened: OpenedDirectory) -> PlanRow:
    """Decide a directory."""
    numbers = opened.handle.numbers
    if isinstance(opened.absolute, Unknown):
        shown = os.fsdecode(opened.path)
        return PlanRow("directories", Fate.REFUSED, shown, opened.absolute.reason, numbers, opened=opened)
    differences = () if os.path.isdir(opened.absolute) else (f"{opened.absolute} is gone",)  # noqa: PTH112
    return PlanRow("directories", Fate.REOPENED, opened.absolute, "", numbers, differences, opened)


def reopen_directory(opened: OpenedDirectory) -> int:
    """Open a directory. Raises CannotReopen."""
    assert isinstance(opened.absolute, str)
    return _open(opened.absolute, opened.handle, os.O_DIRECTORY)


def with_fifos(resources: Resources) -> Resources:
    """Return resources in which a file that is a fifo on the disk is one.

    The log need not show that: `os.open` is recorded without the kind of the file.
    """
    return replace(resources, opened=tuple(_as_fifo(each) if _is_fifo(each) else each for each in resources.opened))


def _is_fifo(opened: OpenResource) -> TypeGuard[OpenedFile]:
    if not isinstance(opened, OpenedFile) or not isinstance(opened.is_regular, Unknown):
        return False
    return isinstance(opened.absolute, str) and Path(opened.absolute).is_fifo()


def _as_fifo(opened: OpenedFile) -> OpenedPipe:
    flags = opened.handle.flags
    mode = flags & os.O_ACCMODE if isinstance(flags, int) else os.O_RDWR
    side = {os.O_RDONLY: "read", os.O_WRONLY: "write"}.get(mode, "both")
    return OpenedPipe(opened.handle, side, str(opened.absolute), ())


def plan_fifo(opened: OpenedPipe) -> PlanRow:
    """Decide a pipe with a path."""
    assert opened.path is not None
    differences = () if os.path.lexists(opened.path) else (f"{opened.path} is gone",)
    return PlanRow("fifos", Fate.REOPENED, opened.path, "", opened.handle.numbers, differences, opened)


def reopen_fifo(opened: OpenedPipe) -> int:
    """Open a fifo without waiting for its other end. Raises CannotReopen if nobody reads what is to be written."""
    assert opened.path is not None
    modes = {"read": os.O_RDONLY, "write": os.O_WRONLY}
    flags = opened.handle.flags if isinstance(opened.handle.flags, int) else modes.get(opened.side, os.O_RDWR)
    try:
        fd = os.open(opened.path, (flags & ~_ONCE) | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise CannotReopen(f"{opened.path}: {error.strerror}") from error
    os.set_blocking(fd, not flags & os.O_NONBLOCK)
    return fd


def plan_terminal(opened: OpenedTerminal) -> PlanRow:
    """Decide a terminal: one with a path that this process did not make."""
    numbers = opened.handle.numbers
    if opened.side is not None or opened.path is None:
        reason = "what was written to it and not yet read is not recorded"
        if opened.side is None:
            reason = "its path is not recorded"
        return PlanRow("terminals", Fate.REFUSED, opened.path or "a pseudoterminal", reason, numbers, opened=opened)
    differences = () if os.path.lexists(opened.path) else (f"{opened.path} is gone",)
    return PlanRow("terminals", Fate.REOPENED, opened.path, "", numbers, differences, opened)


def reopen_terminal(opened: OpenedTerminal) -> int:
    """Open a terminal. Raises CannotReopen."""
    assert opened.path is not None
    return _open(opened.path, opened.handle, 0)


def plan_memory(opened: OpenedMemory) -> PlanRow:
    """Decide a file in memory: only shared memory with a name outlives its process."""
    numbers = opened.handle.numbers
    if not opened.is_shared_memory or opened.is_unlinked:
        return PlanRow("memory", Fate.REFUSED, opened.name, "it ended with its process", numbers, opened=opened)
    differences = (gone(opened),) if is_gone(opened) else ()
    return PlanRow("memory", Fate.REOPENED, opened.name, "", numbers, differences, opened)


def reopen_memory(opened: OpenedMemory) -> int:
    """Open shared memory, or make it again. Raises CannotReopen."""
    if is_gone(opened):
        return make_again(opened)
    return _open(shared_path(opened.name), opened.handle, 0)


def _open(path: str, handle: Handle, more: int) -> int:
    flags = handle.flags if isinstance(handle.flags, int) else os.O_RDWR
    try:
        return os.open(path, (flags & ~_ONCE) | more | os.O_NOCTTY | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise CannotReopen(f"{path}: {error.strerror}") from error
