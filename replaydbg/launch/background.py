"""Seal in the background: the launcher ends as soon as its program has."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

from replaydbg.launch.endings import end_like
from replaydbg.launch.interruption import ENDING


def leave_the_foreground(status: int) -> None:
    """Return in a copy of this process, which has a session of its own; this process ends like the program.

    `status` is that of the program. Whoever started us, and may end us and our process group soon, gets it at once. If
    there can be no copy, this process returns.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    try:
        left, leaves = os.pipe()
        copy = os.fork()
    except OSError:
        return
    if copy:
        os.close(leaves)
        os.read(left, 1)  # until it has left the group, or has ended
        os._exit(end_like(status))
    os.setsid()
    os.close(leaves)
    os.nice(5)
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for each in range(3):
        os.dup2(null, each)
    with suppress(OSError):
        if null > 2:
            os.close(null)
