"""The standard input of a program that goes live is that of the command: is it the one that the program was reading?

If it is a regular file that begins with all that the program has read from its own, the program goes on after these
bytes. Of anything else nothing is skipped: in a pipe or at a terminal, the next bytes are as likely to be new ones.
"""

from __future__ import annotations

import hashlib
import os
import stat

from replaydbg.classes import replace
from replaydbg.events.values import ContentRef
from replaydbg.resources.kinds import InputPart, OpenResource, Resources, StandardInput
from replaydbg.resume.plan_rows import Fate, PlanRow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "standard input"
_PIECE = 1 << 20
"""Bytes that are read at once."""


def with_digests(resources: Resources, content: Callable[[ContentRef], bytes]) -> Resources:
    """Return resources that have the digests of what was read in large pieces, too; `content` returns such a piece."""
    read = resources.standard_input
    if read is None:
        return resources

    def with_digest(part: InputPart) -> InputPart:
        if not isinstance(part.data, ContentRef):
            return part
        digest = hashlib.blake2b()
        for done in range(0, part.length, _PIECE):
            digest.update(content(ContentRef(part.data.offset + done, min(_PIECE, part.length - done))))
        return replace(part, data=digest.digest())

    return replace(resources, standard_input=replace(read, parts=tuple(map(with_digest, read.parts))))


def plan_standard_input(read: StandardInput | None, opened: OpenResource) -> PlanRow:
    """Return the row of the standard input, with the offset at which it continues; nothing is moved yet."""
    row = PlanRow("streams", Fate.REOPENED, NAME, "", opened.handle.numbers, opened=opened)
    if read is None or not read.count:
        return row
    if is_continued(read):
        return replace(row, reason=f"continues at byte {read.position:,}", input_position=read.position)
    return replace(row, reason=f"{bytes_read(read)}; none of them are skipped in this one")


def bytes_read(read: StandardInput) -> str:
    """Return how many bytes were read, as a clause."""
    return f"the program had read {read.count:,} byte{'s' * (read.count != 1)} from its own"


def is_continued(read: StandardInput, fd: int = 0) -> bool:
    """Whether a descriptor is a regular file with what the program has read from its standard input."""
    try:
        found = os.fstat(fd)
        is_long_enough = stat.S_ISREG(found.st_mode) and found.st_size >= read.position
        return is_long_enough and read.is_known and all(_is_same(fd, part) for part in read.parts)
    except OSError:
        return False  # it is closed, or cannot be read


def _is_same(fd: int, part: InputPart) -> bool:
    digest, position, end = hashlib.blake2b(), part.offset, part.offset + part.length
    while position < end and (piece := os.pread(fd, min(_PIECE, end - position), position)):
        digest.update(piece)
        position += len(piece)
    return position == end and digest.digest() == part.data
