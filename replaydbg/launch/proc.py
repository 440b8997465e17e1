"""Whether /proc shows the processes that this one sees. Containers may have none, or that of another namespace."""

from __future__ import annotations

import os


def has_proc() -> bool:
    """Whether /proc is mounted, and numbers processes as this process does."""
    try:
        return os.readlink("/proc/self") == str(os.getpid())  # noqa: PTH115 - pathlib is not loaded when a recording starts
    except OSError:
        return False
