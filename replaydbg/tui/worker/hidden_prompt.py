"""A prompt without a screen: its output is collected, and the panels show the position."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from replaydbg.commands.surface import SourceRow
from replaydbg.events.show import printable
from replaydbg.tui.view_model import ConsoleLine


class ConsoleLog:
    """Collects the output of a command, for the console."""

    is_immediate = False

    def __init__(self, check: Callable[[], None]) -> None:
        """`check` raises Cancelled if the running command is to be cancelled."""
        self.check = check
        self.columns = 0
        """The width of the console; 0: unknown."""
        self._lines: list[ConsoleLine] = []

    def line(self, text: str = "", style: str = "") -> None:
        """Add a line, or several."""
        self.check()
        self._lines += [ConsoleLine(printable(each.expandtabs()), style) for each in text.split("\n")]

    def complain(self, text: str) -> None:
        """Add an error message."""
        self._lines += [ConsoleLine(printable(each), "error") for each in text.split("\n")]

    def settle(self) -> None:
        """Do nothing: the collected output is shown at the end."""

    def source(self, file: str, lines: Sequence[str], rows: Sequence[SourceRow]) -> None:
        """Add lines of a file."""
        for row in rows:
            mark = "->" if row.is_current else "  "
            self.line(f"{row.hits or '':>8} {mark} {row.number:>5}  {row.text}", "bold" if row.is_current else "")

    def take_lines(self) -> tuple[ConsoleLine, ...]:
        """Return the collected output, and clear it."""
        lines, self._lines = tuple(self._lines), []
        return lines
