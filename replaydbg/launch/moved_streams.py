"""The standard streams of a server that speaks a protocol at them."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def moved_streams() -> tuple[Callable[[int], bytes], Callable[[bytes], None]]:
    """Move the standard input and output away; return what reads at most so many bytes, and what writes all.

    What else writes to the standard output, such as a process of a replay, would be taken for a message, and what reads
    from the standard input would take one away. Both functions raise OSError.
    """
    reads, writes = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)

    def write(data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(writes, left) :]

    return lambda size: os.read(reads, size), write
