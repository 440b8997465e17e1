"""Compare a file with what the program wrote to it and read from it last. Nothing before that is read again."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from replaydbg.classes import replace
from replaydbg.events.values import ContentRef
from replaydbg.resources.kinds import LastFileRead, LastFileWrite, OpenedFile, Resources, Unknown
from replaydbg.resume.digest import output_digest

MOST_COMPARED = 1 << 20
"""Bytes that are compared with the disk: the end of a longer read, and nothing of a longer write."""


def with_contents(resources: Resources, content: Callable[[ContentRef], bytes]) -> Resources:
    """Return resources that have what was read last from large files, too; `content` returns it."""

    def with_content(opened: OpenedFile) -> OpenedFile:
        last = opened.last_read
        if last is None or not isinstance(last.data, ContentRef):
            return opened
        left_out = max(0, last.data.length - MOST_COMPARED)
        data = content(ContentRef(last.data.offset + left_out, last.data.length - left_out))
        return replace(opened, last_read=LastFileRead(last.event, last.offset + left_out, data))

    found = (with_content(each) if isinstance(each, OpenedFile) else each for each in resources.opened)
    return replace(resources, opened=tuple(found))


def content_differences(opened: OpenedFile) -> tuple[str, ...]:
    """Return how a regular file that can be read differs from what was recorded; more after its end is none."""
    if not isinstance(opened.absolute, str):
        return ()
    path = opened.absolute
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return ()  # the rule of the file has the reason
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return ()
        if isinstance(opened.size, int) and found.st_size < opened.size:
            return (f"{path} is shorter: {found.st_size:,} bytes, recorded {opened.size:,}",)
        written = _differs_from_written(fd, path, opened.last_write)
        return (*written, *_differs_from_read(fd, path, found.st_size, opened.last_read))
    finally:
        os.close(fd)


def _differs_from_written(fd: int, path: str, last: LastFileWrite | None) -> list[str]:
    if last is None or last.digest is None or isinstance(last.offset, Unknown) or last.length > MOST_COMPARED:
        return []
    if output_digest(os.pread(fd, last.length, last.offset)) == last.digest:
        return []
    return [f"{path} has other content: bytes {last.offset:,} to {last.offset + last.length:,} are not those written"]


def _differs_from_read(fd: int, path: str, size: int, last: LastFileRead | None) -> list[str]:
    """Compare what was read last. A file that only grew since, such as a log that is followed, does not differ."""
    if last is None or not isinstance(last.data, bytes):
        return []
    data = last.data[-MOST_COMPARED:]
    end = last.offset + len(last.data)
    begin = end - len(data)
    found = os.pread(fd, len(data), begin)
    if found == data:
        return []
    if len(found) < len(data):
        return [f"{path} is shorter: {size:,} bytes, and the program had read {end:,}"]
    return [f"{path} has other content: bytes {begin:,} to {end:,} are not those that the program read"]
