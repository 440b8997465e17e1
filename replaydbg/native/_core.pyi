"""What of the native core is called from Python."""

from typing import Any, NoReturn

def boot(directory: str, /) -> NoReturn:
    """Run the program that the boot file in `directory` describes."""

def fence(report_fd: int, /) -> None:
    """Put up the fence of a replay around this process, for good; refusals go to the descriptor. Raises OSError."""

def system_calls() -> dict[int, tuple[str, int]]:
    """Return the name and the kind (0: always refused, 1: always allowed; see calls.h) of each system call."""

def capture(fd: int, roots: dict[str, Any], nodes: int, edges: int, items: int, text: int, /) -> None:
    """Write a snapshot of what `roots` lead to; for the tests."""
