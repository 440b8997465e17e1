"""The parts of a prompt without a screen: its output is collected, and the panels show the position."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from replaydbg.commands.surface import SourceRow
from replaydbg.commands.view import View
from replaydbg.debugger import Session
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


class SilentView(View):
    """A view that does not print its position: the panels show it."""

    def show_here(self, around: int = 0) -> None:
        """Do nothing: the source panel shows it."""

    def show_displays(self) -> None:
        """Do nothing: the panel of the watched expressions shows them."""


class Busy:
    """A stand-in for the prompt's Ctrl-C handling: here the check of the console log cancels a command."""

    @contextmanager
    def busy(self, session: Session | None = None) -> Iterator[None]:
        """Context of a running operation; nothing has to be done."""
        yield
