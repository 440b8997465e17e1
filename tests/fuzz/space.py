"""A directory in memory for the files of one process: a thousand mutations a second should not reach a disk."""

import os
import shutil
import tempfile
from functools import cache
from pathlib import Path


@cache
def scratch(process: int = 0) -> Path:
    """Return the directory of this process, which must call `clear` at its end."""
    shared = Path("/dev/shm")
    place = shared if shared.is_dir() and os.access(shared, os.W_OK) else None
    return Path(tempfile.mkdtemp(prefix="replaydbg-fuzz-", dir=place))


def scratch_file(name: str, data: bytes) -> str:
    """Write a file there, and return its path."""
    path = f"{scratch(os.getpid())}/{name}"
    # Not pathlib: this is done for each mutation.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)
    return path


def clear() -> None:
    """Remove the directory of this process."""
    shutil.rmtree(scratch(os.getpid()), ignore_errors=True)
    scratch.cache_clear()
