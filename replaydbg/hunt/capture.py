"""Recorded runs seen from outside: capture a program's output and status, and delete unwanted recordings."""

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
    """The output and exit status of one run of a program, recorded or replayed."""

    status: int
    """The exit code, or minus the number of the signal that ended it."""
    output: bytes
    """The content of stdout."""
    errors: bytes
    """The content of stderr."""


class Capture:
    """Two files that receive a program's output; they have no name and need not be removed."""

    def __init__(self, stdout: BinaryIO, stderr: BinaryIO) -> None:
        self.stdout = stdout
        self.stderr = stderr

    def run(self, status: int) -> Outside:
        """Return the output, with the exit code."""
        # The program wrote through descriptors of its own; these objects have buffered nothing.
        self.stdout.seek(0)
        self.stderr.seek(0)
        return Outside(status, self.stdout.read(), self.stderr.read())


@contextmanager
def captured() -> Iterator[Capture]:
    """Yield two such files, and close them afterwards."""
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        yield Capture(stdout, stderr)


def discard(path: Path) -> None:
    """Remove a recording; one that could not be sealed is still a directory. A missing one is ignored."""
    if path.is_dir():
        # Its program may still be exiting, and write.
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
