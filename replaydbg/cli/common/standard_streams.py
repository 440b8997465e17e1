"""The standard streams: whether they are a terminal, and what replaces those that were closed from the start."""

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


def is_interactive() -> bool:
    """Whether stdin and the output are a terminal."""
    return all(each is not None and each.isatty() for each in (sys.stdin, sys.stdout))
