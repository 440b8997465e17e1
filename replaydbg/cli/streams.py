"""Standard streams that whoever started the command has closed."""

from __future__ import annotations

import os
import sys


def open_closed_streams() -> None:
    """Let closed standard streams lead nowhere, or a file of ours would get the number, and what is printed."""
    fd = os.open(os.devnull, os.O_RDWR)
    while fd <= 2:
        fd = os.dup(fd)
    os.close(fd)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
