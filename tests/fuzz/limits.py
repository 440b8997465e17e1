"""The limits under which a target runs, and the exceptions for exceeding them."""

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

SECONDS = 10.0
"""CPU time limit of an input."""
MEMORY = 1 << 30
"""Memory in bytes that reading an input may add to a process."""


class Hang(BaseException):
    """An input exceeded its CPU time. Not an Exception: a reader that catches those must not swallow it."""


@contextmanager
def limited_memory(more: int = MEMORY) -> Iterator[None]:
    """Limit this process to `more` additional bytes in the block, which gets a MemoryError beyond.

    The worker's own memory (its corpus, parsed inputs) does not count.
    """
    words = Path("/proc/self/statm").read_text(encoding="ascii").split()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (int(words[0]) * resource.getpagesize() + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _late(number: int, frame: FrameType | None) -> None:
    raise Hang


@contextmanager
def timed(seconds: float = SECONDS) -> Iterator[None]:
    """Raise Hang in a block that exceeds the CPU time. The parent ends code that never returns to Python."""
    signal.signal(signal.SIGPROF, _late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
