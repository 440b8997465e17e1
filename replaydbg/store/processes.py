"""Which processes there are."""

from __future__ import annotations

import os


def exists(pid: int) -> bool:
    """Whether there is a process `pid`, of whatever user; one counts that has ended and has not been waited for."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
