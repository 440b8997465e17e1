"""A process that holds a log as the program of a recording does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SOURCE = "import mmap, sys; log = open(sys.argv[1], 'r+b'); m = mmap.mmap(log.fileno(), 0); print(flush=True); input()"


@contextmanager
def log_writer(live: Path) -> Iterator[int]:
    """Let a process write the log of a live directory in the block, which gets its id."""
    words = [sys.executable, "-c", _SOURCE, str(live / "log")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        program.stdout.readline()
        try:
            yield program.pid
        finally:
            program.communicate(b"\n")
