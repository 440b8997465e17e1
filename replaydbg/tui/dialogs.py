"""What opens over the panels and goes away again: lists to choose from, and text to be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import ModalScreen

from replaydbg.tui.plain import set_subtitle, set_title
from replaydbg.tui.rows import Row, Rows, plain


class Dialog(ModalScreen[object]):
    """Rows of which one can be chosen; it returns the key of that one, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "Close", show=False),
    ]

    def __init__(self, title: str, rows: Sequence[Row], *, cursor: int = 0, hint: str = "") -> None:
        """`hint` says what can be done."""
        super().__init__()
        self._title, self._hint, self._cursor = title, hint, cursor
        self._shown = list(rows)

    def compose(self) -> ComposeResult:
        """Make the box."""
        with Container(id="box") as box:
            set_title(box, self._title)
            set_subtitle(box, self._hint or "Esc closes")
            yield Rows("", id="choices")

    def on_mount(self) -> None:
        """Show the rows."""
        rows = self.query_one(Rows)
        self.set_class(self.app.screen_stack[0].has_class("-ascii"), "-ascii")
        first = next((at for at, each in enumerate(self._shown) if each.key is not None), 0)
        rows.styles.height = max(len(self._shown), 1)
        rows.show(self._shown or [plain("There is nothing.", "dim")], cursor=self._cursor or first)
        rows.focus()

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        """Return what was chosen."""
        event.stop()
        self.dismiss(event.key)


def text_rows(text: str) -> list[Row]:
    """Return text as rows that are only read."""
    return [plain(line) for line in text.splitlines()]
