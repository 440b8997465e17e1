"""A file of a cache of the user's: written as a whole, for its user alone."""

from __future__ import annotations

import os


def write_whole(path: str, data: bytes) -> None:
    """Write a file that others see either complete or not at all. Raises OSError, and leaves nothing then."""
    partial = f"{path}.{os.getpid()}"
    fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb", buffering=0) as file:  # noqa: PTH123
            file.write(data)
        os.replace(partial, path)  # noqa: PTH105
    except BaseException:
        os.unlink(partial)  # noqa: PTH108
        raise
