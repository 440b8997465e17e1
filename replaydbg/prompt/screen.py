"""Output of the prompt: plain text, or coloured text on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from replaydbg.commands.surface import SourceRow
from replaydbg.errors import Cancelled
from replaydbg.events.show import printable

if TYPE_CHECKING:
    from rich.console import Console

HIGHLIGHTED = 5000
"""Number of lines above which a file is highlighted only where it is shown: a thousand lines take 15 ms."""


class Screen:
    """Prints text that came from a recording safely. `check` is called at each line, and may raise to cancel."""

    is_immediate = True
    columns = 0

    def __init__(self, out: TextIO, err: TextIO, *, is_coloured: bool, check: Callable[[], None]) -> None:
        self._out, self._err = out, err
        self.check = check
        """Raises Cancelled if the running command is to be cancelled."""
        self._console: Console | None = None
        self._highlighted: dict[str, list[Any]] = {}
        if is_coloured:
            # Imported here: rich takes 20 ms and more, and only a terminal shows its effects.
            from rich.console import Console

            self._console = Console(file=out, highlight=False, soft_wrap=True)

    def line(self, text: str = "", style: str = "") -> None:
        """Print a line, or several."""
        self.check()
        for each in text.split("\n"):
            self._one(printable(each.expandtabs()), style)

    def complain(self, text: str) -> None:
        """Print an error message."""
        self._out.flush()
        self._err.write("".join(f"{printable(each)}\n" for each in text.split("\n")))
        self._err.flush()

    def settle(self) -> None:
        """Flush all output, and clear the progress line."""
        try:
            self.check()
        except Cancelled:
            return  # it has already ended
        finally:
            self._out.flush()

    def source(self, file: str, lines: Sequence[str], rows: Sequence[SourceRow]) -> None:
        """Print lines of a file, whose whole text is `lines`: hit count, number, and an arrow at the current one."""
        width = len(str(max((row.number for row in rows), default=0)))
        most = max((len(f"{row.hits:,}") for row in rows if row.hits is not None), default=0)
        for row in rows:
            self.check()
            hits = f"{row.hits:,}x" if row.hits else ""
            head = f"{hits:>{most + 1}} " if most else ""
            head += f"{'->' if row.is_current else '  '} {row.number:>{width}}  "
            self._row(head, row, file, lines)

    def _one(self, text: str, style: str) -> None:
        if self._console is None:
            self._out.write(text + "\n")
            return
        from rich.text import Text  # imported already

        self._console.print(Text(text, style))

    def _row(self, head: str, row: SourceRow, file: str, lines: Sequence[str]) -> None:
        if self._console is None:
            self._out.write((head + printable(row.text.expandtabs())).rstrip() + "\n")
            return
        from rich.text import Text  # imported already

        code = self._code(file, lines, row)
        self._console.print(Text.assemble((head, "bold yellow" if row.is_current else "dim"), code))

    def _code(self, file: str, lines: Sequence[str], row: SourceRow) -> Any:
        """Return the line in colours.

        Highlighted files are cached: a line's colours may depend on the lines before it.
        """
        from rich.syntax import Syntax  # only a terminal needs it

        if len(lines) > HIGHLIGHTED:
            return Syntax("", "python", theme="ansi_dark").highlight(printable(row.text.expandtabs()))[:-1]
        if file not in self._highlighted:
            text = "\n".join(printable(each.expandtabs()) for each in lines)
            self._highlighted[file] = list(Syntax("", "python", theme="ansi_dark").highlight(text).split("\n"))
        known = self._highlighted[file]
        return known[row.number - 1] if row.number <= len(known) else printable(row.text)
