"""What of the native core is called from Python."""

from typing import Any, NoReturn

from _typeshed import ReadableBuffer

def boot(file: str | int, /) -> NoReturn:
    """Run the program that the boot file describes, given by its path or descriptor."""

def descriptors() -> list[int]:
    """Return the open descriptors of this process; for systems without /proc."""

def first_environment() -> list[bytes]:
    """Return the environment that this process was started with, empty where that is unknown; the same."""

def fence(report_fd: int, /) -> None:
    """Put up the fence of a replay around this process, for good; refusals go to the descriptor. Raises OSError."""

def system_calls() -> dict[int, tuple[str, int]]:
    """Return the name and the kind (0: always refused, 1: always allowed; see calls.h) of each system call."""

def stream_digest(before: int, data: ReadableBuffer, /) -> int:
    """Return the digest of bytes behind others, as transfers have it; for the tests."""

def capture(fd: int, roots: dict[str, Any], nodes: int, edges: int, items: int, text: int, /) -> None:
    """Write a snapshot of what `roots` lead to; for the tests."""
