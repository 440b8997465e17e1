"""Replace standard streams that were closed when the command was started."""

from __future__ import annotations

import os
import sys


def open_closed_streams() -> None:
    """Open closed standard streams on /dev/null; else a file of ours would get the number and all that is printed."""
    fd = os.open(os.devnull, os.O_RDWR)
    while fd <= 2:
        fd = os.dup(fd)
    os.close(fd)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
