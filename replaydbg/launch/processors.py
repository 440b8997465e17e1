"""How many processors there are for this process."""

from __future__ import annotations

import os


def processors() -> int:
    """Return the number of processors that this process may use, at least one."""
    # Systems other than Linux do not say which ones, and some interpreters do not ask.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
