"""Which files an event opens to read, and which names or contents of files it changes."""

from __future__ import annotations

import os

from replaydbg.events.records import Event
from replaydbg.resources.event_values import argument, integer

_NAMES = """
mkdir rmdir rename replace link symlink unlink remove mkfifo mknod chmod chown lchown truncate utime setxattr
removexattr
"""
_CHANGES = frozenset(f"posix.{name}" for name in _NAMES.split())
_OPEN = "posix.open"
_FILE = "_io.FileIO.__init__"


def _is_read_only(event: Event) -> bool:
    if event.gate == _FILE:
        mode = argument(event, 1, default="r")
        return isinstance(mode, str) and not set(mode) & set("wax+")
    flags = integer(argument(event, 1, "flags"))
    return not flags & (os.O_ACCMODE | os.O_CREAT | os.O_TRUNC)


def _opened(event: Event) -> str | None:
    path = argument(event, 0) if event.gate in (_FILE, _OPEN) else None
    return path if isinstance(path, str) else None


def opened_to_read(event: Event) -> str | None:
    """Return the path of a file that the event has opened with what is in it, to read it."""
    path = _opened(event)
    if path is None or event.raised:
        return None
    if event.gate == _FILE:
        mode = argument(event, 1, default="r")
        return path if isinstance(mode, str) and set(mode) & set("r+") and not set(mode) & set("wx") else None
    flags = integer(argument(event, 1, "flags"))
    return path if flags & os.O_ACCMODE != os.O_WRONLY and not flags & (os.O_TRUNC | os.O_EXCL) else None


def changed_paths(event: Event) -> list[str]:
    """Return the paths whose file, attributes or existence an event may have changed."""
    path = _opened(event)
    if path is not None:
        return [] if _is_read_only(event) else [path]
    if event.gate not in _CHANGES:
        return []
    return [each for each in event.arguments or () if isinstance(each, str)]
