"""Plain text for Textual, which parses markup in a `str`: text from a program or a user must never be parsed.

All titles, lines of text and toasts are set here (tests/tui/test_tui_markup.py checks it): a `[key]` in a path, a
message or an expression is shown as it is.
"""

from __future__ import annotations

from rich.text import Text
from textual.app import App
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static


def set_title(widget: Widget, title: str | Content) -> None:
    """Set the title in the upper border; only `Content` has styles and links."""
    widget.border_title = _content(title)


def set_subtitle(widget: Widget, title: str | Content) -> None:
    """Set the title in the lower border, in the same way."""
    widget.border_subtitle = _content(title)


def toast(app: App[int], text: str, *, title: str = "") -> None:
    """Show `text` in a corner for a while."""
    app.notify(text, title=title, markup=False)


class PlainText(Static):
    """Text that is shown as it is."""

    def __init__(self, *, id: str) -> None:
        """Create it without text."""
        super().__init__("", id=id, markup=False)

    def set_text(self, text: str | Text | Content, *, layout: bool = True) -> None:
        """Show another text; without `layout` its size must be unchanged."""
        self.update(Content(text) if isinstance(text, str) else text, layout=layout)


def _content(text: str | Content) -> Content:
    return text if isinstance(text, Content) else Content(text)
