"""Interfaces of a prompt to its front end: the screen that shows answers, and cancellation by Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from replaydbg.debugger import Session
from replaydbg.events.show import printable


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A line of source to be shown."""

    number: int
    text: str
    hits: int | None
    """How often it ran; None: that is not to be shown."""
    is_current: bool


class Surface(Protocol):
    """Takes text that came from a recording."""

    @property
    def is_immediate(self) -> bool:
        """Whether a line appears at once, not only when the command has ended."""

    @property
    def columns(self) -> int:
        """Width of what is shown; 0: that of the terminal."""

    @property
    def check(self) -> Callable[[], None]:
        """Raises Cancelled if what runs is to be given up."""

    def line(self, text: str = "", style: str = "") -> None:
        """Show a line, or several."""

    def complain(self, text: str) -> None:
        """Show a sentence about what could not be done."""

    def settle(self) -> None:
        """Let everything be seen, and progress no longer."""

    def source(self, file: str, lines: Sequence[str], rows: Sequence[SourceRow]) -> None:
        """Show lines of a file, whose whole text is `lines`."""


class Interruptible(Protocol):
    """Knows that something runs, and gives it up when its user wants that."""

    def busy(self, session: Session | None = None) -> AbstractContextManager[None]:
        """While something runs."""


class Uninterrupted:
    """Stands in for the handling of Ctrl-C where there is none: the surface's `check` cancels a command."""

    def busy(self, session: Session | None = None) -> AbstractContextManager[None]:
        """While something runs: nothing has to be done."""
        return nullcontext()


class CollectedText:
    """A surface that collects what commands print. Control characters are escaped: the text is from a recording."""

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

    def take_lines(self) -> list[str]:
        """Return what was printed since the last time."""
        lines, self._lines = self._lines, []
        return lines

    def take(self) -> str:
        """Return what was printed since the last time, as one text."""
        return "\n".join(self.take_lines())
