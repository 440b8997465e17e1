"""Check whether /proc shows this process's namespace. Containers may have none, or that of another namespace."""

from __future__ import annotations

import os


def has_proc() -> bool:
    """Whether /proc is mounted, and numbers processes as this process sees them."""
    try:
        return os.readlink("/proc/self") == str(os.getpid())  # noqa: PTH115 - pathlib is not loaded when a recording starts
    except OSError:
        return False
