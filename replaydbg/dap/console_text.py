"""What a command prints, for the answer to the request that contains it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from replaydbg.commands.surface import SourceRow
from replaydbg.events.show import printable


class ConsoleText:
    """Collects what commands print. Control characters are escaped: the text comes from a recording."""

    is_immediate = False
    columns = 0

    def __init__(self, check: Callable[[], None]) -> None:
        """`check` raises Cancelled if the running request is to end."""
        self.check = check
        self._lines: list[str] = []

    def line(self, text: str = "", style: str = "") -> None:
        """Add a line, or several."""
        self.check()
        self._lines += [printable(each.expandtabs()) for each in text.split("\n")]

    def complain(self, text: str) -> None:
        """Add an error message."""
        self._lines += [printable(each) for each in text.split("\n")]

    def settle(self) -> None:
        """Do nothing: it is read at the end."""

    def source(self, file: str, lines: Sequence[str], rows: Sequence[SourceRow]) -> None:
        """Add lines of a file."""
        for row in rows:
            mark = "->" if row.is_current else "  "
            self.line(f"{row.hits or '':>8} {mark} {row.number:>5}  {row.text}")

    def take(self) -> str:
        """Return what was printed since the last time."""
        text, self._lines = "\n".join(self._lines), []
        return text
