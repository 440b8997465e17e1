"""Derive from a recording which files existed when the program began: each path, and its kind.

The first request of a program for a path shows its initial state. A replay of edited code is answered with that where
the recording has no answer; the core tracks the program's changes afterwards.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypedDict

from replaydbg.events.records import Event
from replaydbg.events.values import ExceptionValue, StatResult

if TYPE_CHECKING:
    from replaydbg.log.reader import Recording

UNKNOWN, DIRECTORY, REGULAR, ABSENT = range(4)
PHYSICAL = 6
"""The same numbers as in native/lenient_facts.c."""

_DIRECTORIES = {DIRECTORY, PHYSICAL}

MOST_EVENTS = 500_000
"""Number of the event above which the recording is not read for it, which would take seconds."""


_STARTS = frozenset(
    f"{module}.{name}"
    for module, names in {
        "posix": "fork forkpty posix_spawn posix_spawnp system execv execve",
        "_posixsubprocess": "fork_exec",
        "libc": "fork vfork system posix_spawn posix_spawnp",
    }.items()
    for name in names.split()
)
"""Other programs may make and remove any file."""


class KnownPaths(TypedDict):
    """The fields for the core."""

    cwd: str
    """The working directory."""
    paths: dict[bytes, int]
    """The kinds of paths."""
    all: bool
    """Whether they are complete: if installed C code or `ctypes` ran in the program, it may have made files unseen."""


_known: dict[tuple[str, int, int], KnownPaths] = {}
"""A cache for the last recording: one is replayed many times."""


def known_paths(recording: Recording) -> KnownPaths:
    """Return the paths that were known when the program began, with their kinds."""
    about = recording.path.stat()
    key = (str(recording.path), about.st_mtime_ns, about.st_size)
    if key not in _known:
        _known.clear()
        _known[key] = _find_paths(recording)
    return _known[key]


def _find_paths(recording: Recording) -> KnownPaths:
    first: dict[str, int] = {}
    now: dict[str, int] = {}
    unsure: set[str] = set()
    cwd, is_closed = recording.header.cwd, True
    for event in recording.events(last=MOST_EVENTS, controls=False):
        if not isinstance(event, Event) or not event.arguments:
            continue
        if event.gate in _STARTS:
            return {
                "cwd": recording.header.cwd,
                "paths": _encoded(_with_parents({}, recording.header.cwd)),
                "all": False,
            }
        path = event.arguments[0]
        if event.gate.startswith(("libc.", "_sqlite3.vfs.")) and isinstance(path, str) and path:
            unsure.add(_whole(path, cwd))
        if event.gate not in _SAYS or not isinstance(path, str):
            continue
        if any(isinstance(each, dict) and "dir_fd" in each for each in event.arguments):
            continue
        if event.gate == "posix.chdir" and not event.raised:
            cwd = _whole(path, cwd) or cwd
        whole = _whole(path, cwd)
        if not whole:
            continue
        was = _SAYS[event.gate](event)
        if was != UNKNOWN and now.get(whole, UNKNOWN) not in (UNKNOWN, was) and {was, now[whole]} != _DIRECTORIES:
            unsure.add(whole)  # another process has changed it
        first.setdefault(whole, was)
        now[whole] = _after(event, was)
        if event.gate in ("posix.rename", "posix.replace") and len(event.arguments) > 1:
            now.pop(_whole(str(event.arguments[1]), cwd), None)
    for answer in recording.world():
        if answer.path.endswith(".so") and "/lib-dynload/" not in answer.path and not answer.raised:
            is_closed = False
        is_closed = is_closed and "/lib-dynload/_ctypes." not in answer.path
        if answer.operation == "stat" and answer.path.startswith("/") and answer.asked == 1:
            first.setdefault(answer.path, _of_stat(answer.outcome))
    paths = _with_parents(
        {path: UNKNOWN if path in unsure else kind for path, kind in first.items()}, recording.header.cwd
    )
    return {"cwd": recording.header.cwd, "paths": _encoded(paths), "all": is_closed and "" not in unsure}


def _after(event: Event, was: int) -> int:
    """Return the kind of a path after a call that concerns it."""
    if event.raised:
        return was
    name = event.gate.rpartition(".")[2]
    if name == "mkdir":
        return DIRECTORY
    if name in ("rmdir", "unlink", "remove", "rename", "replace"):
        return ABSENT
    return UNKNOWN if name in ("open", "__init__") else was


def _with_parents(first: dict[str, int], cwd: str) -> dict[str, int]:
    """Return the paths with the parent directories of existing files, which existed as well."""
    found = {path: kind for path, kind in first.items() if kind != UNKNOWN}
    known = (DIRECTORY, REGULAR, PHYSICAL)
    there = [path for path, kind in found.items() if kind in known]
    for path in there:
        for parent in PurePosixPath(path).parents:
            # The first request for it may show that the program made it.
            if str(parent) not in first:
                found[str(parent)] = DIRECTORY
    # The kernel's name of the working directory contains no link.
    found |= dict.fromkeys((cwd, *map(str, PurePosixPath(cwd).parents)), PHYSICAL)
    return found


def _encoded(found: dict[str, int]) -> dict[bytes, int]:
    return {os.fsencode(path): kind for path, kind in found.items()}


def _whole(path: str, cwd: str) -> str:
    """Return an absolute path; empty if it contains "..", which may follow a link."""
    if not path or ".." in path.split("/"):
        return ""
    whole = os.path.normpath(os.path.join(cwd, path))  # noqa: PTH118
    return whole if whole.startswith("/") and not whole.startswith("//") else ""


def _is_missing(event: Event) -> bool:
    outcome = event.outcome
    return event.raised and isinstance(outcome, ExceptionValue) and outcome.type.qualname == "FileNotFoundError"


def _of_stat(outcome: object) -> int:
    if isinstance(outcome, StatResult):
        kind = stat.S_IFMT(outcome.mode)
        return DIRECTORY if kind == stat.S_IFDIR else REGULAR if kind == stat.S_IFREG else UNKNOWN
    is_missing = isinstance(outcome, ExceptionValue) and outcome.type.qualname == "FileNotFoundError"
    return ABSENT if is_missing else UNKNOWN


def _of_listing(event: Event) -> int:
    return ABSENT if _is_missing(event) else UNKNOWN if event.raised else DIRECTORY


def _of_access(event: Event) -> int:
    asks = event.arguments[1] if event.arguments is not None and len(event.arguments) > 1 else None
    return ABSENT if asks == os.F_OK and event.outcome is False else UNKNOWN


def _of_making(event: Event) -> int:
    # The obstacle may be a file.
    return UNKNOWN if event.raised else ABSENT


def _of_removal(event: Event) -> int:
    return ABSENT if _is_missing(event) else UNKNOWN


_SAYS: dict[str, Callable[[Event], int]] = {
    "posix.stat": lambda event: _of_stat(event.outcome),
    "posix.lstat": lambda event: {DIRECTORY: PHYSICAL}.get(_of_stat(event.outcome), _of_stat(event.outcome)),
    "posix.listdir": _of_listing,
    "posix.scandir": _of_listing,
    "posix.chdir": _of_listing,
    "posix.access": _of_access,
    "posix.mkdir": _of_making,
    "posix.rmdir": lambda event: ABSENT if _is_missing(event) else UNKNOWN if event.raised else DIRECTORY,
    "posix.unlink": _of_removal,
    "posix.remove": _of_removal,
    "posix.rename": _of_removal,
    "posix.replace": _of_removal,
    "posix.open": _of_removal,
    "_io.FileIO.__init__": _of_removal,
}
"""For each call, what it shows about the earlier kind of the path."""
