"""The icicle graph of the heap: what keeps memory alive, as boxes below the boxes that hold them."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import ClassVar

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from replaydbg.events.show import printable
from replaydbg.render.tables import sizes
from replaydbg.tui.dialogs.dialog import Dialog
from replaydbg.tui.dialogs.icicle_layout import IcicleCell, Level, levels
from replaydbg.tui.icicle_model import IcicleAnswer, IcicleBox
from replaydbg.tui.widgets.glyphs import Glyphs
from replaydbg.tui.widgets.plain_text import PlainText

SHORTEST = 5
"""Columns of a name that is cut: with fewer it is left out."""

HINT = "arrows select  Enter zooms  Backspace back  o object"


def together(boxes: Sequence[IcicleBox]) -> IcicleBox:
    """Return a box of those that are too narrow to be drawn alone."""
    retained = sum(each.retained for each in boxes)
    return IcicleBox(f"{len(boxes):,} smaller", "", "several objects", retained, sizes(retained), tuple(boxes))


class Icicle(Widget, can_focus=True):
    """The graph: a level for each step, one box of each is under the cursor or around the one that is."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"icicle--even", "icicle--odd", "rows--cursor", "rows--dim"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "level(-1)", "The box around it", show=False, id="rows.up"),
        Binding("down,j", "level(1)", "The largest box inside", show=False, id="rows.down"),
        Binding("left,h", "beside(-1)", "Left", show=False, id="timeline.left"),
        Binding("right,l", "beside(1)", "Right", show=False, id="timeline.right"),
        Binding("home", "beside(-1000000000)", "The leftmost", show=False),
        Binding("end", "beside(1000000000)", "The rightmost", show=False),
        Binding("enter", "zoom", "Zoom", show=False),
        Binding("backspace", "back", "Zoom out", show=False),
        Binding("o", "open", "The object", show=False),
    ]
    drawn_at = math.inf

    class Selected(Message):
        """Another box is under the cursor, or another one is the widest."""

    class ObjectWanted(Message):
        """A request to show the facts about an object."""

        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = path

    def __init__(self, whole: IcicleBox, glyphs: Glyphs) -> None:
        super().__init__(id="icicle")
        self.zoomed: list[IcicleBox] = [whole]
        """The boxes that were zoomed to, the present one last."""
        self._glyphs = glyphs
        self._levels: list[Level] = []
        self._level, self._place = 0, 0
        self._top = 0
        """The first level that is visible."""

    # ---- content ----

    @property
    def chosen(self) -> IcicleCell:
        """The cell under the cursor."""
        return self._levels[self._level][self._place]

    def on_resize(self) -> None:
        """Place the boxes for the new width; the cursor stays in its box if that is visible."""
        self._lay_out(self.chosen.boxes[0] if self._levels else self.zoomed[-1])

    def _lay_out(self, box: IcicleBox) -> None:
        self._levels = levels(self.zoomed[-1], max(self.size.width, 1))
        places = [
            (number, place)
            for number, level in enumerate(self._levels)
            for place, cell in enumerate(level)
            if any(each is box for each in cell.boxes)
        ]
        self._select(*(places[0] if places else (0, 0)))

    def _select(self, level: int, place: int) -> None:
        self._level, self._place = level, place
        room = max(self.size.height // self._height, 1)
        self._top = max(min(self._top, level), level - room + 1, 0)
        self.refresh()
        self.post_message(self.Selected())

    @property
    def _height(self) -> int:
        """Lines of a level: two, with the size below the name, if all levels have room."""
        return 2 if 2 * len(self._levels) <= self.size.height else 1

    # ---- drawing ----

    def render_line(self, y: int) -> Strip:
        """Draw one line."""
        self.drawn_at = min(self.drawn_at, time.monotonic())
        width, base = self.size.width, self.rich_style
        number, line = divmod(y, self._height)
        number += self._top
        if number >= len(self._levels):
            return Strip.blank(width, base)
        segments, at = [], 0
        for place, cell in enumerate(self._levels[number]):
            segments.append(Segment(" " * (cell.first - at), base))
            is_chosen = (number, place) == (self._level, self._place)
            style = base + self._style("rows--cursor" if is_chosen else f"icicle--{'odd' if place % 2 else 'even'}")
            segments.append(Segment(set_cell_size(self._text(cell, line), cell.last - cell.first), style))
            at = cell.last
        return Strip(segments).adjust_cell_length(width, base)

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(name, partial=True)

    def _text(self, cell: IcicleCell, line: int) -> str:
        """Return a line of a cell, which begins with its left border: colour is not the only sign of it."""
        width = cell.last - cell.first - 1
        border = self._glyphs.pillar
        box = cell.box
        if box is None:
            texts = ["" if line else f"{len(cell.boxes):,} more", "" if line else self._glyphs.dots]
        elif self._height == 1:
            texts = [f"{box.step}  {box.size}", self._cut(box.step, width)]
        elif not line:
            texts = [self._cut(box.step, width)]
        else:
            texts = [f"{box.size}  {box.type}", box.size]
        # A number is whole, or left out.
        return border + next((text for text in texts if len(text) <= width), "")

    def _cut(self, text: str, width: int) -> str:
        """Return the beginning of a name; of few characters it would tell nothing."""
        if len(text) <= width:
            return text
        return text[: width - 1] + self._glyphs.dots if width >= SHORTEST else self._glyphs.dots

    # ---- input ----

    def action_level(self, by: int) -> None:
        """Go to the box around the present one, or to the largest one inside."""
        if by < 0 and self._level:
            self._select(self._level - 1, self.chosen.around)
        elif by > 0 and self._level + 1 < len(self._levels):
            below = self._levels[self._level + 1]
            inside = next((place for place, cell in enumerate(below) if cell.around == self._place), None)
            if inside is not None:
                self._select(self._level + 1, inside)

    def action_beside(self, by: int) -> None:
        """Go to another box of the level."""
        self._select(self._level, max(0, min(self._place + by, len(self._levels[self._level]) - 1)))

    def action_zoom(self) -> None:
        """Let the box under the cursor take the whole width; of one that has nothing inside, show the object."""
        box = self.chosen.box or together(self.chosen.boxes)
        if box is self.zoomed[-1] or not box.boxes:
            self.action_open()
            return
        self.zoomed.append(box)
        self._lay_out(box)

    def action_back(self) -> None:
        """Show what was shown before the last zoom."""
        if len(self.zoomed) > 1:
            self._lay_out(self.zoomed.pop())

    def action_open(self) -> None:
        """Show the facts about the object."""
        box = self.chosen.box
        if box is not None and box.path:
            self.post_message(self.ObjectWanted(box.path))

    def on_click(self, event: events.Click) -> None:
        """Select a box; a second click zooms to it."""
        number = event.y // self._height + self._top
        level = self._levels[number] if number < len(self._levels) else ()
        place = next((at for at, cell in enumerate(level) if cell.first <= event.x < cell.last), None)
        if place is None:
            return
        self._select(number, place)
        if event.chain > 1:
            self.action_zoom()


class IcicleDialog(Dialog):
    """The graph, with a line about the box under the cursor. It returns the path of an object to show, or None."""

    def __init__(self, answer: IcicleAnswer, glyphs: Glyphs) -> None:
        super().__init__(answer.title, (), hint=HINT, is_late=True)
        self._answer, self._glyphs = answer, glyphs

    def compose(self) -> ComposeResult:
        """Make the box."""
        with Container(id="box") as box:
            self.set_border_texts(box)
            yield PlainText(id="head")
            yield Icicle(self._answer.whole, self._glyphs)
            yield PlainText(id="detail")

    def fill(self) -> None:
        """Wait for the width."""

    @property
    def content(self) -> Widget:
        """The graph."""
        return self.query_one(Icicle)

    @property
    def drawn_at(self) -> float:
        """When it was first drawn."""
        return min((each.drawn_at for each in self.query(Icicle)), default=math.inf)

    def on_icicle_selected(self, event: Icicle.Selected) -> None:
        """Describe the box under the cursor."""
        if not self.has_parts:
            return
        icicle = self.query_one(Icicle)
        self.query_one("#head", PlainText).set_text(" > ".join(each.step for each in icicle.zoomed))
        self.query_one("#detail", PlainText).set_text(self._about(icicle.chosen))

    def _about(self, cell: IcicleCell) -> str:
        box = cell.box or together(cell.boxes)
        share = box.retained / (self._answer.whole.retained or 1)
        return f"{printable(box.path) or box.step}\n{box.type}, retains {box.size}, {share:.1%} of all"

    def on_icicle_object_wanted(self, event: Icicle.ObjectWanted) -> None:
        """Return the object."""
        self.dismiss(event.path)
