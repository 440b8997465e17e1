"""What of the native core is called from Python."""

from typing import Any, NoReturn

def boot(directory: str, /) -> NoReturn:
    """Run the program that the boot file in `directory` describes."""

def capture(fd: int, roots: dict[str, Any], nodes: int, edges: int, items: int, text: int, /) -> None:
    """Write a snapshot of what `roots` lead to; for the tests."""
