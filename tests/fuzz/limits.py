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


def limit_memory(more: int = MEMORY) -> None:
    """Let this process take no more than `more` bytes from here on: then it gets a MemoryError."""
    words = Path("/proc/self/statm").read_text(encoding="ascii").split()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (int(words[0]) * resource.getpagesize() + more, hard))


def unlimit_memory() -> None:
    """Undo that, for a process that is started."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


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
