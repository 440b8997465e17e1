"""Recorded runs seen from outside: what a program wrote, how it ended, and dropping recordings that nobody wants."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO


@dataclass(frozen=True, slots=True)
class Outside:
    """One run of a program, recorded or replayed, as seen from outside."""

    status: int
    """The exit code, or minus the number of the signal that ended it."""
    output: bytes
    """What it wrote to stdout."""
    errors: bytes
    """What it wrote to stderr."""


class Capture:
    """Two files that a program writes its output to; they have no name and need not be removed."""

    def __init__(self, stdout: BinaryIO, stderr: BinaryIO) -> None:
        self.stdout = stdout
        self.stderr = stderr

    def run(self, status: int) -> Outside:
        """What was written, with the exit code."""
        # The program wrote through descriptors of its own; these objects have buffered nothing.
        self.stdout.seek(0)
        self.stderr.seek(0)
        return Outside(status, self.stdout.read(), self.stderr.read())


@contextmanager
def captured() -> Iterator[Capture]:
    """Give two such files, and close them."""
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        yield Capture(stdout, stderr)


def discard(path: Path) -> None:
    """Remove a recording; one that could not be sealed is still a directory. What is not there is gone already."""
    if path.is_dir():
        # Its program may be ending still, and write.
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
