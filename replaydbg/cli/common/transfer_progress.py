"""How far a transfer is, on a terminal."""

from __future__ import annotations

import sys
import time

from replaydbg.render.measures import show_size

_SHOWN_AFTER, _EVERY = 1.0, 0.2
"""Seconds."""


class TransferProgress:
    """A line on stderr, if that is a terminal, which is gone when the block ends."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._begun = time.monotonic()
        self._shown = 0.0

    def __enter__(self) -> TransferProgress:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def show(self, done: int, total: int) -> None:
        """Show that so many bytes of all are there."""
        now = time.monotonic()
        if not sys.stderr.isatty() or now < self._begun + _SHOWN_AFTER or now < self._shown + _EVERY:
            return
        self._shown = now
        sys.stderr.write(f"\r{self._what}: {show_size(done)} of {show_size(total)}\x1b[K")
        sys.stderr.flush()
