"""Find writes in flight on the disk: the bytes after the recorded end of a file are compared with those of the call.

Threads that were writing to one file at its end may each have written, in any order, and the last one in part.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from replaydbg.classes import NamedTuple
from replaydbg.resources.kinds import LastFileWrite, OpenedFile, Unknown
from replaydbg.resume.conversation import CallInFlight
from replaydbg.resume.digest import output_digest
from replaydbg.resume.findings import Finding, changed, done, repeat, unknown

MOST_TOGETHER = 6
"""The most calls in flight to one file whose order is searched for: the search tries each order."""


MOST_PARTIAL = 1 << 16
"""Bytes. Of a longer write to a file of unknown size, only a whole one is searched for."""


class WriteFindings(NamedTuple):
    """The findings on the writes in flight to one open file."""

    findings: tuple[Finding, ...]
    moved: int
    """How many bytes were written at its current offset."""


def find_written(opened: OpenedFile, calls: Sequence[CallInFlight], *, is_cut_off: bool = False) -> WriteFindings:
    """Find on the disk which of `calls`, writes to `opened` at its current offset, were made.

    `is_cut_off`: what the file has after its recorded end will be cut off before they are made.
    """
    if is_cut_off and isinstance(opened.size, int):
        return WriteFindings(
            tuple(repeat(each, "the file is truncated to its recorded size; the call is then made") for each in calls),
            0,
        )
    place = _place(opened)
    if isinstance(place, str):
        return WriteFindings(tuple(unknown(each, place) for each in calls), 0)
    path, start, at_end = place
    last = opened.last_write
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError as error:
        return WriteFindings(tuple(changed(each, f"{path} cannot be read: {error.strerror}") for each in calls), 0)
    try:
        if start is None:
            starts = _possible_starts(fd, last, calls)
            if len(starts) > 1:
                reason = f"where {path} ended is not recorded, and more than one place fits"
                return WriteFindings(tuple(unknown(each, reason) for each in calls), 0)
            # If none fits, something else was written after what is known.
            start = starts[0] if starts else 0
        return _appended(fd, path, start, calls) if at_end else _overwritten(fd, start, calls)
    finally:
        os.close(fd)


def _place(opened: OpenedFile) -> tuple[str, int | None, bool] | str:
    """Return the path, where the next write begins, and whether that is the file's end; or why it is not known.

    Where the end of a file is that is always written there need not be known: then the place is None.
    """
    if isinstance(opened.absolute, Unknown):
        return opened.absolute.reason
    flags = opened.handle.flags
    if isinstance(flags, int) and flags & os.O_APPEND:
        return opened.absolute, None if isinstance(opened.size, Unknown) else opened.size, True
    if isinstance(opened.offset, Unknown):
        return opened.offset.reason
    return opened.absolute, opened.offset, opened.offset == opened.size


def _possible_starts(fd: int, last: LastFileWrite | None, calls: Sequence[CallInFlight]) -> list[int]:
    """Return where a file may have ended before the calls: after the last write, as its digest shows it."""
    end = os.fstat(fd).st_size
    total = sum(call.data_length for call in calls)
    if total <= MOST_PARTIAL:
        lengths: Sequence[int] = range(min(total, end) + 1)
    else:
        lengths = sorted({0, total, *(call.data_length for call in calls)})
    found = []
    for start in (end - length for length in lengths if length <= end):
        if _order(fd, start, end, dict(enumerate(calls))) is not None and ends_with(fd, start, last):
            found.append(start)
    return found


def ends_with_last_write(opened: OpenedFile) -> bool:
    """Whether a file that is written at its end, wherever that is, ends with the last write; True if not known."""
    if not isinstance(opened.absolute, str) or opened.last_write is None:
        return True
    try:
        fd = os.open(opened.absolute, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return True
    try:
        return ends_with(fd, os.fstat(fd).st_size, opened.last_write)
    finally:
        os.close(fd)


def ends_with(fd: int, start: int, last: LastFileWrite | None) -> bool:
    """Whether the bytes before `start` are those of the last write, as far as that is known."""
    if last is None or last.digest is None or last.length > MOST_PARTIAL:
        return True
    return start >= last.length and output_digest(_read(fd, start - last.length, last.length)) == last.digest


def _overwritten(fd: int, start: int, calls: Sequence[CallInFlight]) -> WriteFindings:
    """Compare in the middle of a file: what was there before is not known, and writing it again does no harm."""
    if len(calls) == 1 and calls[0].data_length and _matches(fd, start, start + calls[0].data_length, calls[0]):
        length = calls[0].data_length
        return WriteFindings((done(calls[0], "found on the disk, not written again", length),), length)
    return WriteFindings(tuple(repeat(each, "not on the disk, will be written") for each in calls), 0)


def _appended(fd: int, path: str, start: int, calls: Sequence[CallInFlight]) -> WriteFindings:
    end = os.fstat(fd).st_size
    if end <= start:
        return WriteFindings(tuple(repeat(each, "not on the disk, will be written") for each in calls), 0)
    if len(calls) > MOST_TOGETHER:
        return WriteFindings(tuple(unknown(each, f"{len(calls)} threads wrote to {path}") for each in calls), 0)
    found = _order(fd, start, end, dict(enumerate(calls)))
    if found is None:
        reason = f"{path} has {end - start:,} bytes after its recorded end that are not those of this call"
        return WriteFindings(tuple(changed(each, reason) for each in calls), 0)
    findings = [_of_part(each, found.get(index, 0)) for index, each in enumerate(calls)]
    return WriteFindings(tuple(findings), end - start)


def _of_part(call: CallInFlight, length: int) -> Finding:
    if not length:
        return repeat(call, "not on the disk, will be written")
    if length == call.data_length:
        return done(call, "found on the disk, not written again", length)
    return done(call, f"{length:,} of its bytes found on the disk, the rest will be written", length)


def _order(fd: int, position: int, end: int, left: Mapping[int, CallInFlight]) -> dict[int, int] | None:
    """Return for each call how many bytes it wrote, so that together they are all up to `end`; None: they are not."""
    if position == end:
        return {}
    for index, call in left.items():
        if not call.data_length or not _matches(fd, position, end, call):
            continue
        length = min(call.data_length, end - position)
        rest = _order(fd, position + length, end, {each: left[each] for each in left if each != index})
        if rest is not None:
            return {index: length, **rest}
    return None


def _matches(fd: int, position: int, end: int, call: CallInFlight) -> bool:
    """Whether the bytes from `position` up to `end` begin with those of the call, as far as both go.

    Of a call with more than 16 MiB only the first ones are known.
    """
    wanted = call.data[: max(end - position, 0)]
    return _read(fd, position, len(wanted)) == wanted


def _read(fd: int, position: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = os.pread(fd, size - len(data), position + len(data))
        if not piece:
            break
        data += piece
    return data
