"""The palette: all actions, of which typed text selects some.

That of Textual cannot be closed while it searches: what it finds then raises, and ends the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.fuzzy import Matcher
from textual.widget import Widget
from textual.widgets import Input

from replaydbg.tui.dialogs.dialog import Choices, Dialog
from replaydbg.tui.dialogs.input_line import TypedInput
from replaydbg.tui.widgets.rows import PanelRow, Rows, plain


class PaletteCommand(NamedTuple):
    """An entry."""

    title: str
    keys: str
    """Those that do the same; empty: none."""
    run: Callable[[], Any]


class _PaletteInput(TypedInput):
    """The line for the text."""

    async def action_submit(self) -> None:
        """Choose the entry under the cursor."""
        palette = self.screen
        assert isinstance(palette, PaletteDialog), "it has no other place"
        # Text that came together with Enter was not announced yet.
        palette.search(self.value)
        palette.query_one(Rows).action_choose()


class _PaletteRows(Choices, can_focus=False):
    """The entries that match."""

    SHOWS_CURSOR = True
    CHOOSES_AT_ONCE = True


class PaletteDialog(Dialog):
    """A line for text, and the entries that match it, the best first. It returns one, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "cursor(-1)", "Up", show=False),
        Binding("down", "cursor(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
    ]

    def __init__(self, commands: Iterable[PaletteCommand]) -> None:
        super().__init__("Actions", (), hint="Enter runs it   Esc closes")
        self._commands = list(commands)
        self._wanted: str | None = None

    def compose(self) -> ComposeResult:
        """Make the box."""
        with Container(id="box") as box:
            self.set_border_texts(box)
            yield _PaletteInput(id="wanted", compact=True)
            yield _PaletteRows("", id="choices")

    @property
    def content(self) -> Widget:
        """The line."""
        return self.query_one(_PaletteInput)

    def fill(self) -> None:
        """Show all entries."""
        self.query_one(Rows).styles.height = len(self._commands)
        self.search("")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the entries that match the text."""
        event.stop()
        if self.has_parts:
            self.search(event.value)

    def search(self, text: str) -> None:
        """Show the entries that match a text; empty: all."""
        wanted = text.strip()
        if wanted == self._wanted:
            return  # the cursor stays
        self._wanted = wanted
        matcher = Matcher(wanted)
        scored = [(matcher.match(each.title) if wanted else 1.0, each) for each in self._commands]
        found = sorted((each for each in scored if each[0] > 0), key=lambda each: -each[0])
        width = max(len(each.keys) for each in self._commands)
        rows = [PanelRow(((f"{each.keys:>{width}}  ", "bold"), (each.title, "")), each) for _, each in found]
        self.query_one(Rows).show(rows or [plain("No action matches.", "dim")], cursor=0)

    def action_cursor(self, by: int) -> None:
        """Move the cursor by a number of entries."""
        self.query_one(Rows).action_cursor(by)

    def action_page(self, by: int) -> None:
        """Move it by the visible height."""
        self.query_one(Rows).action_page(by)
