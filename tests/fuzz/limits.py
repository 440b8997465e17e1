"""The limits under which a target runs, and what one exceeds."""

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

SECONDS = 10.0
"""CPU time that an input may take."""
MEMORY = 1 << 30
"""Bytes that reading an input may add to a process."""


class Hang(BaseException):
    """An input took more CPU time than it may. No Exception: a reader that catches those must not swallow it."""


@contextmanager
def limited_memory(more: int = MEMORY) -> Iterator[None]:
    """Let this process take no more than `more` bytes more in what runs inside: that gets a MemoryError.

    What a worker itself keeps (its corpus, what it takes apart) does not count.
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
    """Raise Hang in what takes more CPU time. What never comes back to Python is the parent's to end."""
    signal.signal(signal.SIGPROF, _late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
