"""Cut files off where they ended at the moment from which a program goes on: it makes what follows again."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack

from replaydbg.resume.plan_rows import CannotReopen
from replaydbg.resume.power_loss.recovered_files import Leftover


class Truncation:
    """The files with leftovers while a program is resumed, or a group of them."""

    def __init__(self, leftovers: Iterable[Leftover], stack: ExitStack) -> None:
        """Open them; `stack` closes them. Raises CannotReopen."""
        self._opened: list[tuple[int, Leftover]] = []
        for each in leftovers:
            try:
                fd = os.open(each.path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
            except OSError as error:
                raise CannotReopen(f"{each.path} cannot be truncated: {error.strerror}") from error
            stack.callback(os.close, fd)
            self._opened.append((fd, each))

    def perform(self) -> None:
        """Truncate all, or none if anybody has written to one meanwhile. Raises CannotReopen."""
        for fd, each in self._opened:
            # A hook may have cut it off.
            if (size := os.fstat(fd).st_size) not in (each.found, each.size):
                raise CannotReopen(f"{each.path} has changed during the replay: {size:,} bytes, were {each.found:,}")
        for fd, each in self._opened:
            try:
                os.ftruncate(fd, each.size)
            except OSError as error:
                raise CannotReopen(f"{each.path} cannot be truncated: {error.strerror}") from error
