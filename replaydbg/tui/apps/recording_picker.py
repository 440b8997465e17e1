"""The list of recordings, which opens if none was named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType

from replaydbg.tui.apps.ending_signals import end_on_signals
from replaydbg.tui.apps.themes import use_theme
from replaydbg.tui.widgets.plain_text import set_subtitle
from replaydbg.tui.widgets.rows import PanelRow, Rows, plain


@dataclass(frozen=True, slots=True)
class Listed:
    """A recording in the list."""

    path: Path
    name: str
    created: str
    ended: str
    """Description of how the program ended."""
    is_failure: bool
    command: str


class _List(Rows):
    """The recordings, newest first."""

    def __init__(self) -> None:
        super().__init__("Recordings", id="recordings")

    def on_mount(self) -> None:
        """Show the keys."""
        set_subtitle(self, "Enter opens   q quits")


class Picker(App[Path | int]):
    """Lets the user choose a recording; its result is the path, the exit code if a signal ended it, or None."""

    CSS_PATH = Path(__file__).with_name("app.tcss")
    TITLE = "replaydbg"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,escape,ctrl+c", "quit", "Leave", show=False, priority=True)]

    def __init__(self, recordings: Sequence[Listed], *, theme: str = "dark", is_ascii: bool = False) -> None:
        """List `recordings`, newest first."""
        super().__init__()
        self._recordings = recordings
        self._is_ascii = is_ascii
        use_theme(self, theme)

    def compose(self) -> ComposeResult:
        """Make the list."""
        yield _List()

    def on_mount(self) -> None:
        """Show the recordings."""
        end_on_signals(self)
        self.screen.set_class(self._is_ascii, "-ascii")
        rows = self.query_one(_List)
        rows.show(
            [self._row(each) for each in self._recordings]
            or [plain("No recordings. Create one with `replaydbg record`.")]
        )
        rows.focus()

    def _row(self, each: Listed) -> PanelRow:
        width = max(len(one.name) for one in self._recordings)
        ended = max(len(one.ended) for one in self._recordings)
        sign = "!" if each.is_failure else " "
        pieces = (
            (f"{sign} ", "error"),
            (f"{each.name:<{width}}  ", "bold"),
            (f"{each.created:<19}  ", "dim"),
            (f"{each.ended:<{ended}}  ", "error" if each.is_failure else ""),
            (each.command, ""),
        )
        return PanelRow(pieces, each.path)

    def on_rows_chosen(self, message: Rows.Chosen) -> None:
        """Return the chosen one."""
        if isinstance(message.key, Path):
            self.exit(message.key)
