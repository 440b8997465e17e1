"""Files and directories with access for their owner only: recordings contain environments, arguments and values."""

from __future__ import annotations

import os
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

FILE_MODE, DIRECTORY_MODE = 0o600, 0o700


def make_directory(path: Path) -> None:
    """Make a directory and its missing parents; an existing one stays unchanged. Raises OSError."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for each in reversed(missing):
        each.mkdir(mode=DIRECTORY_MODE, exist_ok=True)


def open_private(path: Path, mode: str = "w", *, errors: str = "strict") -> IO[str]:
    """Open a text file, with access for its owner only if it is created now. Raises OSError."""
    return open(path, mode, encoding="utf-8", errors=errors, opener=private)


def private(path: str, flags: int) -> int:
    """Open a file, with access for its owner only if it is created now: an opener for `open`."""
    return os.open(path, flags, FILE_MODE)


def write_private(path: Path, data: bytes) -> None:
    """Write a file completely or not at all; only its owner has access, even if it replaces a readable file.

    A device or pipe is written to in place. Raises OSError.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    target = path.resolve()  # what a symbolic link leads to
    temporary = target.with_name(f".{target.name}-{os.getpid()}")
    # "x": through a link that somebody else has made, another file would be written.
    with open(temporary, "xb", opener=private) as file:
        try:
            file.write(data)
            file.flush()
            temporary.replace(target)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
