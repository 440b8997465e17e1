"""Let a launcher end the way its program did."""

from __future__ import annotations

import os
import signal
import sys


def end_like(status: int) -> int:
    """Return the exit code for a program's status; a signal ends this process, too, so that a shell sees the same."""
    if status >= 0:
        return status
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    if -status in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGPIPE, signal.SIGALRM):
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return 128 - status
