"""Messages of ours when standard error was closed from the start."""

from __future__ import annotations

import io
import sys


class Discarded(io.TextIOBase):
    """A stream that discards its text. It uses no descriptor: the number of the closed stream stays free."""

    def writable(self) -> bool:
        """Return True: `write` works."""
        return True

    def write(self, text: str, /) -> int:
        """Discard `text`."""
        return len(text)


def discard_messages() -> None:
    """Discard what this process prints on stderr if that is closed: print() would write it to stdout instead."""
    if sys.stderr is None:
        sys.stderr = Discarded()
