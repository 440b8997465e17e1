"""What follows from a recording about the files that were there when the program began: each path, and what it was.

The first thing that a program asked of a path says how it was then. A replay of edited code is answered with that where
the recording has no answer; the core follows what the program does afterwards.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from replaydbg.events.records import Event
from replaydbg.events.values import ExceptionValue, StatResult

if TYPE_CHECKING:
    from replaydbg.log.reader import Recording

UNKNOWN, DIRECTORY, REGULAR, ABSENT = range(4)
PHYSICAL = 6
"""The same numbers as in native/lenient_facts.c."""

MOST_EVENTS = 500_000
"""Later events are not read for it, which would take seconds."""


def known_paths(recording: Recording) -> dict[str, Any]:
    """Return what the core is told: the working directory, and the paths with what they were."""
    first: dict[str, int] = {}
    cwd = recording.header.cwd
    for event in recording.events(last=MOST_EVENTS, controls=False):
        if not isinstance(event, Event) or not event.arguments or event.gate not in _SAYS:
            continue
        path = event.arguments[0]
        if not isinstance(path, str) or any(isinstance(each, dict) and "dir_fd" in each for each in event.arguments):
            continue
        if event.gate == "posix.chdir" and not event.raised:
            cwd = _whole(path, cwd) or cwd
        whole = _whole(path, cwd)
        if whole and whole not in first:
            first[whole] = _SAYS[event.gate](event)
    for answer in recording.world():
        if answer.operation == "stat" and answer.path.startswith("/") and answer.asked == 1:
            first.setdefault(answer.path, _of_stat(answer.outcome))
    return {"cwd": recording.header.cwd, "paths": _encoded(_with_parents(first, recording.header.cwd))}


def _with_parents(first: dict[str, int], cwd: str) -> dict[str, int]:
    """Return it with the directories in which something was, which were there as well."""
    found = {path: kind for path, kind in first.items() if kind != UNKNOWN}
    known = (DIRECTORY, REGULAR, PHYSICAL)
    there = [path for path, kind in found.items() if kind in known]
    for path in there:
        for parent in PurePosixPath(path).parents:
            # What was asked of it first may say that the program made it.
            if str(parent) not in first:
                found[str(parent)] = DIRECTORY
    # The kernel's name of the working directory leads through no link.
    found |= dict.fromkeys((cwd, *map(str, PurePosixPath(cwd).parents)), PHYSICAL)
    return found


def _encoded(found: dict[str, int]) -> dict[bytes, int]:
    return {os.fsencode(path): kind for path, kind in found.items()}


def _whole(path: str, cwd: str) -> str:
    """Return it as an absolute path; empty if it goes up, perhaps through a link."""
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
    # What is in the way may be a file.
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
"""What the first call of each says of how the path was before."""
