"""Check whether a process exists."""

from __future__ import annotations

import os


def exists(pid: int) -> bool:
    """Whether there is a process `pid`, of any user; one that has ended and has not been waited for counts."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
