"""Panel 4: what is in memory, what changed in it between two moments, and who holds an object."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from replaydbg.tui.view_model import HeapAnswer, HeapRow
from replaydbg.tui.widgets.plain_text import set_subtitle
from replaydbg.tui.widgets.rows import PanelRow, Rows, plain
from replaydbg.tui.widgets.sparkline import sparkline

SCOPES = ("mine", "standard", "all")
"""The scopes of objects: the user's code, also the standard library, everything."""

_STYLES = {"~": "warning", "+": "new", "-": "error"}


def heap_row(each: HeapRow, written: str = "") -> PanelRow:
    """Draw a line of a heap diff; `written` is the place of the last write."""
    if each.is_title:
        return plain(each.text, "accent")
    style = _STYLES.get(each.mark, "")
    key = each if each.path else None
    where = f"  {written}" if written else ""
    return PanelRow(((f"{each.mark or ' '} ", style), (each.text, ""), (f"  {each.value}", style), (where, "dim")), key)


def arranged(rows: Sequence[HeapRow], height: int) -> Sequence[HeapRow]:
    """Return the rows of sections in an order in which the beginning of each is in the first `height` lines.

    If not all fit, the rest of the first section comes behind the second one.
    """
    titles = [at for at, each in enumerate(rows) if each.is_title]
    if len(rows) <= height or len(titles) != 2 or titles[0] != 0:
        return rows
    second = titles[1]
    shown = max((height - 2) // 2, 1)
    if second - 1 <= shown:
        return rows
    rest = rows[1 + shown : second]
    return [*rows[: 1 + shown], *rows[second:], HeapRow("More types", is_title=True), *rest]


def last_parts(path: str, room: int, dots: str) -> str:
    """Return a path, or behind dots as many of its last parts as fit: these tell more than the first ones.

    The call to which a variable belongs is left out first.
    """
    if len(path) <= room:
        return path
    path = path.partition(" in thread ")[0]
    parts = re.findall(r"[.\[]?[^.\[]+|[.\[]", path)
    while len(parts) > 1 and len("".join(parts)) + len(dots) > room:
        del parts[0]
    found = "".join(parts)
    return found if found == path else dots + found.removeprefix(".")


class HeapPanel(Rows):
    """What is in memory, or the sections of a heap diff in order of importance."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("o,O", "scope", "Scope", show=False, id="heap.scope")]
    HELP = """\
What is in memory at this moment: objects by type, and those that keep most memory alive. After D: what changed between
another moment and this one: values, containers that grew, objects by type, new and removed objects, names.
~ changed, + new, - removed. After L: how memory grows over the run: a bar for each position, from the lowest number to
the highest one, then the first and the last number, and how many bytes came.

  D  compare with another moment
  L  how memory grows over the run
  I  what keeps memory alive, as boxes
  o  scope: my code, the standard library, everything
  H  what is in memory here, again
  enter  one object: where it was created and last written, what refers to it, its retained size
  W  who wrote this value last"""

    class ScopeWanted(Message):
        """A request to show objects of another scope."""

        def __init__(self, scope: str) -> None:
            super().__init__()
            self.scope = scope

    def __init__(self) -> None:
        super().__init__("4 Heap", id="heap")
        self.answer: HeapAnswer | None = None
        """The data shown."""
        self._written: dict[str, str] = {}
        self._wrapped_at = 0
        """The width for which sentences were wrapped."""

    def on_mount(self) -> None:
        """Show how the panel is filled."""
        self.clear()

    def clear(self) -> None:
        """Show nothing of another process; the contents of memory follow."""
        self.answer = None
        self._written = {}
        self.set_title("4 Heap")
        set_subtitle(self, "")
        self.show([plain("Reading the heap ...", "dim")])

    def show_contents(self, contents: HeapAnswer) -> None:
        """Show what is in memory at one moment; the cursor stays in its row."""
        is_first = self.answer is None or self.answer.scope or self._is_growth
        self.answer = contents
        self.set_title(f"4 Heap  {contents.title}")
        set_subtitle(self, "D compares it with another moment")
        self._written = {}
        rows = arranged(contents.rows, self.scrollable_content_region.height)
        self.show([heap_row(each) for each in rows], cursor=0 if is_first else None)

    def show_answer(self, answer: HeapAnswer) -> None:
        """Show the differences."""
        self.answer = answer
        self.set_title(f"4 Heap  {answer.title.split(': ')[0]}")
        set_subtitle(self, f"scope (o): {answer.scope}")
        self._written = {}
        # At the first row with an object: Enter and W refer to it.
        self._draw(answer, cursor=1 + next((at for at, each in enumerate(answer.rows) if each.path), -1))

    def show_growth(self, answer: HeapAnswer) -> None:
        """Show how memory grows over the run."""
        self.answer = answer
        self.set_title(f"4 Heap  {answer.title}")
        set_subtitle(self, "H shows what is in memory here")
        self._written = {}
        rows = list(self._growth_rows(answer.rows))
        self.show(rows, cursor=next((at for at, each in enumerate(rows) if each.key is not None), 0))

    def _growth_rows(self, rows: Sequence[HeapRow]) -> Iterator[PanelRow]:
        # One column is for the end of the line. Without a width the panel is not visible: it is wrapped when it is.
        self._wrapped_at = self.scrollable_content_region.width
        for each in rows:
            if each.is_text:
                for line in textwrap.wrap(each.text, max(self._wrapped_at - 1, 20)):
                    yield plain(line, "bold")
            elif each.series:
                bars = f"{sparkline(each.series, self.glyphs.bars)} "
                room = self._wrapped_at - len(bars) - len(each.value) - 3
                name = last_parts(each.text, room, self.glyphs.dots) if self._wrapped_at else each.text
                yield PanelRow(((bars, "accent"), (f"{each.value}  ", ""), (name, "")), each if each.path else None)
            else:
                yield heap_row(each)

    @property
    def _is_growth(self) -> bool:
        return self.answer is not None and any(each.series for each in self.answer.rows)

    def on_resize(self) -> None:
        """Fit the rows into the new size; the cursor stays in its row, not at its number."""
        answer, chosen = self.answer, self.chosen
        if answer is None or (answer.scope and not self._is_growth):
            return
        if self._is_growth:
            rows = list(self._growth_rows(answer.rows))
        else:
            rows = [heap_row(each) for each in arranged(answer.rows, self.scrollable_content_region.height)]
        self.show(rows, cursor=next((at for at, each in enumerate(rows) if chosen and each.key is chosen), None))

    def set_written(self, path: str, text: str) -> None:
        """Show where a changed value was last written."""
        if self.answer is not None and self.answer.scope:
            self._written[path] = text
            self._draw(self.answer)

    def _draw(self, answer: HeapAnswer, cursor: int | None = None) -> None:
        rows = [heap_row(each, self._written.get(each.path, "") if each.is_changed else "") for each in answer.rows]
        self.show([plain(answer.title, "bold"), *rows], cursor=cursor)

    @property
    def chosen(self) -> HeapRow | None:
        """The row under the cursor."""
        key = self.row.key if self.row is not None else None
        return key if isinstance(key, HeapRow) else None

    def on_click(self, event: events.Click) -> None:
        """Change the scope after a click on the lower border, which shows it."""
        if event.y == self.outer_size.height - 1:
            self.action_scope()

    def action_scope(self) -> None:
        """Show objects of a wider scope, or of the narrowest one again."""
        if self.answer is not None and self.answer.scope:
            at = SCOPES.index(self.answer.scope)
            self.post_message(self.ScopeWanted(SCOPES[(at + 1) % len(SCOPES)]))
