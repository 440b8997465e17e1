"""Dialogs on top of the panels: lists to choose from, and text to read."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual._styles_cache import StylesCache
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget

from replaydbg.tui.dialogs.dismissed_once import DismissedOnce
from replaydbg.tui.widgets.plain_text import PlainText, set_subtitle, set_title
from replaydbg.tui.widgets.rows import PanelRow, Rows, plain


class Choices(Rows):
    """The rows of a dialog, which record when they were first drawn."""

    drawn_at = math.inf

    def render_line(self, y: int) -> Strip:
        """Draw one visible line."""
        self.drawn_at = min(self.drawn_at, time.monotonic())
        return super().render_line(y)


class Dialog(DismissedOnce, ModalScreen[object]):
    """A list in which one row can be chosen; it returns the key of that row, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "Close", show=False),
    ]

    def __init__(
        self,
        title: str,
        rows: Sequence[PanelRow],
        *,
        cursor: int = 0,
        hint: str = "",
        head: str = "",
        is_late: bool = False,
    ) -> None:
        """`hint` describes the keys; `head` is a line above the rows that does not scroll.

        `is_late`: it opens by itself, whatever the user is typing.
        """
        super().__init__()
        self._head = head
        self.is_late = is_late
        self._title, self._hint, self._cursor = title, hint, cursor
        self._shown = list(rows)

    def compose(self) -> ComposeResult:
        """Make the box."""
        with Container(id="box") as box:
            self.set_border_texts(box)
            if self._head:
                head = PlainText(id="head")
                head.set_text(self._head)
                yield head
            yield Choices("", id="choices")

    def on_mount(self) -> None:
        """Show the rows."""
        if not self.has_parts or not self.app.screen_stack:
            return  # the app is ending
        self.set_class(self.app.screen_stack[0].has_class("-ascii"), "-ascii")
        self.fill()
        self.set_focus(self.content)

    def on_unmount(self) -> None:
        """Let its pictures go.

        A cache of Textual has the pictures of up to 1,024 closed widgets (textual #6665), 35 MB after half an hour.
        """
        StylesCache.get_inner_outer.cache_clear()

    @property
    def content(self) -> Widget:
        """The widget that gets the focus."""
        return self.query_one(Rows)

    def fill(self) -> None:
        """Show what it was made for."""
        rows = self.query_one(Rows)
        first = next((at for at, each in enumerate(self._shown) if each.key is not None), 0)
        rows.styles.height = max(len(self._shown), 1)
        rows.show(self._shown or [plain("Nothing to show.", "dim")], cursor=self._cursor or first)

    def set_border_texts(self, box: Container) -> None:
        """Show the title and the keys in the border."""
        set_title(box, self._title)
        set_subtitle(box, self._hint or "Esc closes")

    @property
    def has_parts(self) -> bool:
        """Whether its parts exist: what was to be done after the next picture may come when it is closed."""
        return self.is_attached and bool(self.query("#choices, #icicle"))

    @property
    def drawn_at(self) -> float:
        """When it was first drawn, by time.monotonic(); infinite: it was not."""
        return min((each.drawn_at for each in self.query(Choices)), default=math.inf)

    @property
    def is_drawn(self) -> bool:
        """Whether it was drawn already."""
        return self.drawn_at < math.inf

    def is_new_to(self, key: events.Key) -> bool:
        """Whether a key was typed before the dialog was visible: that was meant for something else."""
        return self.is_late and self.drawn_at > key.time

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        """Return the chosen row."""
        event.stop()
        self.dismiss(self.result(event.key))

    def result(self, key: object) -> object:
        """Return what it returns if the row with this key is chosen."""
        return key
