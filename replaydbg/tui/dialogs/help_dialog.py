"""The help of a panel and of all keys, as wide as the terminal allows."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from textual import events

from replaydbg.tui.dialogs.dialog import Dialog
from replaydbg.tui.widgets.rows import PanelRow, Rows, plain

KEYS = 14
"""Columns for the names of keys, with the space around them."""


class HelpDialog(Dialog):
    """Text to read: paragraphs, titles, and lines of keys with their meaning; long ones are wrapped.

    A line that begins with two spaces describes keys: their names, two spaces or more, their meaning. A line that ends
    with a colon is a title. Other lines until the next empty one are a paragraph.
    """

    def __init__(self, text: str, *, hint: str = "") -> None:
        super().__init__("Help", [], hint=hint)
        self._text = text

    def fill(self) -> None:
        """Wait for the width."""

    def on_resize(self, event: events.Resize) -> None:
        """Wrap the text for the new width."""
        self.call_after_refresh(self._wrap)

    def _wrap(self) -> None:
        if not self.has_parts:
            return
        rows = self.query_one(Rows)
        shown = list(help_rows(self._text, max(self.query_one("#box").content_size.width - 1, KEYS + 10)))
        rows.styles.height = len(shown)
        rows.show(shown)


def help_rows(text: str, width: int) -> Iterator[PanelRow]:
    """Yield the rows of a text in a number of columns."""
    for part in re.split(r"\n\n+", text.strip("\n")):
        lines = part.splitlines()
        while lines and not lines[0].startswith("  ") and not lines[0].endswith(":"):
            paragraph = []
            while lines and not lines[0].startswith("  "):
                paragraph.append(lines.pop(0))
            for line in textwrap.wrap(" ".join(paragraph), width):
                yield plain(line)
        for line in lines:
            if line.startswith("  "):
                yield from _keys(line, width)
            else:
                yield plain(line.removesuffix(":"), "accent")
        yield plain("")


def _keys(line: str, width: int) -> Iterator[PanelRow]:
    names, _, meaning = line.strip().partition("  ")
    first, *more = textwrap.wrap(meaning.strip(), width - KEYS - 2) or [""]
    yield PanelRow(((f"  {names:<{KEYS - 1}} ", "bold"), (first, "")))
    for each in more:
        yield PanelRow(((" " * (KEYS + 2), ""), (each, "")))
