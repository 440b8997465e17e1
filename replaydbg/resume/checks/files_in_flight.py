"""The files that calls in flight may have changed: what such a call explains is no difference."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from replaydbg.classes import dataclass
from replaydbg.resources.kinds import OpenedFile
from replaydbg.resume.calls.name_rules import OPENS_FILE
from replaydbg.resume.calls.situation import Situation, call_argument
from replaydbg.resume.conversation import CallInFlight
from replaydbg.resume.in_flight import continues_file, copy_target, is_appended


@dataclass(frozen=True, slots=True)
class FilesInFlight:
    """Possible effects of calls in flight on files, each by its absolute path."""

    written: frozenset[str]
    """Those that are written to. What was written is compared with the disk by the rules of these calls."""
    resized: frozenset[tuple[str, int]]
    """The sizes that files have if a call was made."""

    def explains_size(self, path: str) -> bool:
        """Whether a file has the size that a call in flight gives it."""
        try:
            return (path, os.stat(path).st_size) in self.resized  # noqa: PTH116
        except OSError:
            return False


def files_in_flight(calls: Sequence[CallInFlight], situation: Situation) -> FilesInFlight:
    """Return what the calls may have done to files."""
    written, resized = set(), set()
    for call in calls:
        target = situation.opened(copy_target(call) if copy_target(call) >= 0 else call.fd)
        is_written = continues_file(call, target) or copy_target(call) >= 0
        if is_written and isinstance(target, OpenedFile) and isinstance(target.absolute, str):
            written.add(target.absolute)
        if (found := _resized(call, situation)) is not None:
            resized.add(found)
    return FilesInFlight(frozenset(written), frozenset(resized))


def _resized(call: CallInFlight, situation: Situation) -> tuple[str, int] | None:
    """Return the path of a file and the size that a call gives it; None: it gives none, or it is not known."""
    if call.call in ("posix.open", OPENS_FILE):
        return _emptied(call, situation)
    if call.call == "mmap.mmap.resize":
        return _of_map(call, situation)
    opened = situation.opened(call.fd)
    known = opened if isinstance(opened, OpenedFile) else None
    path = known.absolute if known is not None else _normal(situation.path(call_argument(call, 0, "path")))
    size: object = None
    if call.call == "_io.FileIO.truncate":
        given = call_argument(call, 0)
        size = known.offset if given is None and known is not None else given
    elif call.call in ("posix.truncate", "posix.ftruncate"):
        size = call_argument(call, 1, "length")
    elif call.call == "posix.posix_fallocate":
        size = _sum(call_argument(call, 1), call_argument(call, 2))
    elif call.call in ("posix.pwrite", "posix.pwritev") and known is not None and isinstance(known.size, int):
        end = _sum(call_argument(call, 2, "offset"), call.data_length)
        size = max(known.size, end) if end is not None else None
    return (path, size) if isinstance(path, str) and isinstance(size, int) else None


def _sum(begin: object, length: object) -> int | None:
    return begin + length if isinstance(begin, int) and isinstance(length, int) else None


def _of_map(call: CallInFlight, situation: Situation) -> tuple[str, int] | None:
    """Return the path of a mapped file and the size that it gets, if only one map can be resized."""
    maps = [each for each in situation.resources.mappings if each.is_written]
    size = call_argument(call, 0)
    if len(maps) != 1 or not isinstance(maps[0].path, str) or not isinstance(size, int):
        return None
    return maps[0].path, maps[0].offset + size


def _emptied(call: CallInFlight, situation: Situation) -> tuple[str, int] | None:
    """Return the path of a file that is truncated when it is opened."""
    path = _normal(situation.path(call_argument(call, 0, "path"), call.keywords.get("dir_fd")))
    how = call_argument(call, 1, "flags")
    is_emptied = "w" in how if isinstance(how, str) else isinstance(how, int) and bool(how & os.O_TRUNC)
    return (path, 0) if path is not None and is_emptied else None


def _normal(path: Path | None) -> str | None:
    return None if path is None else os.path.normpath(path)


def appends_in_flight(calls: Sequence[CallInFlight], situation: Situation) -> Iterator[tuple[str, CallInFlight]]:
    """Yield the writes in flight to regular files that are written at their ends, by path."""
    for call in calls:
        opened = situation.opened(call.fd)
        if isinstance(opened, OpenedFile) and continues_file(call, opened) and is_appended(opened):
            yield str(opened.absolute), call
