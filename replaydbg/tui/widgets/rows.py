"""A panel of lines with a cursor, the base of most panels. It draws only visible lines."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, overload

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from replaydbg.tui.widgets.glyphs import ASCII, UNICODE, Glyphs
from replaydbg.tui.widgets.plain_text import set_title

STYLES = (
    "accent",
    "bold",
    "comment",
    "current",
    "decorator",
    "dim",
    "error",
    "function",
    "keyword",
    "never",
    "new",
    "number",
    "string",
    "warning",
)
"""The styles of pieces of rows; app.tcss defines them for each theme."""

Piece = tuple[str, str]
"""Text, and one of STYLES or an empty string."""


@dataclass(frozen=True, slots=True)
class PanelRow:
    """One line of a panel."""

    pieces: tuple[Piece, ...]
    key: object = None
    """The value that it represents; None: it cannot be chosen."""
    style: str = ""
    """For the whole line: one of STYLES."""

    @property
    def text(self) -> str:
        """The line without its styles."""
        return "".join(text for text, _ in self.pieces)


def plain(text: str, style: str = "", key: object = None) -> PanelRow:
    """Return a row of one piece."""
    return PanelRow(((text, style),), key)


class LazyRows(Sequence[PanelRow]):
    """Rows that are created when they are drawn: of many only a few ever are."""

    @abstractmethod
    def row(self, at: int) -> PanelRow:
        """Return the row at an index from 0 on."""

    @overload
    def __getitem__(self, at: int) -> PanelRow: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[PanelRow]: ...

    def __getitem__(self, at: int | slice) -> PanelRow | Sequence[PanelRow]:
        if isinstance(at, slice):
            return [self.row(each) for each in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        return self.row(at % len(self))


class Rows(ScrollView, can_focus=True, inherit_bindings=False):
    """Lines with a cursor. A subclass sets them with `show`."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--cursor", *(f"rows--{each}" for each in STYLES)}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "cursor(-1)", "Up", show=False, id="rows.up"),
        Binding("down,j", "cursor(1)", "Down", show=False, id="rows.down"),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "cursor(-1000000000)", "Top", show=False),
        Binding("end", "cursor(1000000000)", "Bottom", show=False),
        Binding("left", "sideways(-8)", "Left", show=False),
        Binding("right", "sideways(8)", "Right", show=False),
        Binding("enter", "choose", "Choose", show=False),
    ]
    cursor: reactive[int] = reactive(0, repaint=False)
    glyphs: Glyphs = UNICODE
    CHOOSES_AT_ONCE = False
    """Whether one click chooses a row; if false, a second one does."""
    SHOWS_CURSOR = False
    """Whether the row under the cursor is highlighted without the focus, too."""
    HELP = ""
    """Description of the panel and its keys, for `?`."""

    class Chosen(Message):
        """The row under the cursor was chosen."""

        def __init__(self, panel: Rows, key: object) -> None:
            super().__init__()
            self.panel = panel
            self.key = key

        @property
        def control(self) -> Rows:
            """The panel."""
            return self.panel

    def __init__(self, title: str, *, id: str) -> None:
        """`title` is shown in the border."""
        super().__init__(id=id)
        self._title = title
        self._title_shown = title
        set_title(self, title)
        self._rows: Sequence[PanelRow] = ()
        self._looks: dict[str, Style] = {}
        """Resolved styles by name, until they change:

        Textual would resolve each again for every piece of every line.
        """

    # ---- content ----

    def set_title(self, title: str) -> None:
        """Show `title` in the border."""
        self._title = title
        # Textual truncates a title with a one-column ellipsis, which ASCII does not have.
        is_cut = self.glyphs is ASCII and len(title) > self.size.width - 4
        shown = title[: max(self.size.width - 4, 0)] if is_cut else title
        if shown != self._title_shown:
            # Setting it redraws the whole panel.
            self._title_shown = shown
            set_title(self, shown)

    @property
    def rows(self) -> Sequence[PanelRow]:
        """The lines."""
        return self._rows

    def show(self, rows: Sequence[PanelRow], *, cursor: int | None = None, width: int | None = None) -> None:
        """Show other lines; the cursor stays in place if possible, or moves to `cursor`.

        `width`: columns of the longest line, if known.
        """
        is_same = isinstance(rows, list | tuple) and rows == self._rows
        self._rows = rows
        if width is None:
            width = max((cell_len(row.text) for row in rows[:2000]), default=0)
        self.virtual_size = Size(width + 1, len(rows))
        wanted = self.cursor if cursor is None else cursor
        self.cursor = max(0, min(wanted, len(rows) - 1))
        if cursor is not None:
            self.reveal()
        if not is_same:
            self.refresh()

    @property
    def row(self) -> PanelRow | None:
        """The one under the cursor."""
        return self._rows[self.cursor] if self.cursor < len(self._rows) else None

    def reveal(self, margin: int = 3) -> None:
        """Scroll until the cursor is visible, with a few lines around it."""
        height = max(self.scrollable_content_region.height, 1)
        margin = min(margin, (height - 1) // 2)
        top = round(self.scroll_offset.y)
        if self.cursor < top + margin:
            self.scroll_to(y=max(self.cursor - margin, 0), animate=False, force=True)
        elif self.cursor > top + height - 1 - margin:
            self.scroll_to(y=self.cursor - height + 1 + margin, animate=False, force=True)

    # ---- drawing ----

    def render_line(self, y: int) -> Strip:
        """Draw one visible line."""
        x, top = self.scroll_offset
        number = round(top) + y
        width = self.scrollable_content_region.width
        base = self._look("")
        if number >= len(self._rows):
            return Strip.blank(width, base)
        row = self._rows[number]
        style = base
        if row.style:
            style += self._look(row.style)
        if number == self.cursor and self.has_focus:
            # Without the colours of its pieces: they are made for another background.
            cursor = style + self._look("cursor")
            return Strip([Segment(row.text, cursor)]).crop_extend(round(x), round(x) + width, cursor)
        if number == self.cursor and self.SHOWS_CURSOR:
            style += self._look("current")
        strip = Strip(self._segments(row, style))
        return strip.crop_extend(round(x), round(x) + width, style)

    def _segments(self, row: PanelRow, style: Style) -> Iterator[Segment]:
        for text, name in row.pieces:
            yield Segment(text, style + self._look(name) if name else style)

    def _look(self, name: str) -> Style:
        """Return the style with that name; an empty name means the panel's own."""
        if name not in self._looks:
            self._looks[name] = (
                self.get_component_rich_style(f"rows--{name}", partial=True) if name else self.rich_style
            )
        return self._looks[name]

    def notify_style_update(self) -> None:
        """Discard the styles: the theme or the panel's state may have changed."""
        super().notify_style_update()
        self._looks.clear()

    # ---- input ----

    def on_resize(self) -> None:
        """Keep the cursor visible."""
        self.reveal()
        if self._title:
            self.set_title(self._title)

    def watch_cursor(self) -> None:
        """Redraw the cursor's row."""
        self.refresh()

    def action_cursor(self, by: int) -> None:
        """Move the cursor by a number of lines."""
        self.cursor = max(0, min(self.cursor + by, len(self._rows) - 1))
        self.reveal()

    def action_page(self, by: int) -> None:
        """Move the cursor by the visible height."""
        self.action_cursor(by * max(self.scrollable_content_region.height - 1, 1))

    def action_sideways(self, by: int) -> None:
        """Scroll horizontally."""
        self.scroll_to(x=max(self.scroll_offset.x + by, 0), animate=False, force=True)

    def action_choose(self) -> None:
        """Choose the row under the cursor."""
        row = self.row
        if row is not None and row.key is not None:
            self.post_message(self.Chosen(self, row.key))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor there; a second click chooses the row, or the first one does."""
        at = self._row_at(event)
        if at is None:
            return
        self.focus()
        self.cursor = at
        if event.chain > 1 or self.CHOOSES_AT_ONCE:
            self.action_choose()

    def _row_at(self, event: events.MouseEvent) -> int | None:
        offset = event.get_content_offset(self)
        if offset is None:
            return None
        at = round(self.scroll_offset.y) + offset.y
        return at if 0 <= at < len(self._rows) else None
