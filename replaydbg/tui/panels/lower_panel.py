"""Panel 6: the program's output, the console, the events, and notes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Container
from textual.content import Content
from textual.widgets import ContentSwitcher

from replaydbg.tui.view_model import ConsoleLine, MarkRow, Overview, PointRow, Scene
from replaydbg.tui.widgets.plain_text import set_title
from replaydbg.tui.widgets.rows import LazyRows, PanelRow, Rows, plain

MOST_LINES = 10_000
"""Maximum number of lines in the console."""

_CONSOLE_STYLES = {"red": "error", "yellow": "warning", "cyan": "accent"}


class OutputPanel(Rows):
    """The program's output; choosing a line goes to its moment."""

    HELP = """\
All output of the program. Output after this moment is dim; ! marks stderr.

  enter, click  go to the moment the line was written"""
    CHOOSES_AT_ONCE = True

    def __init__(self) -> None:
        super().__init__("", id="output")
        self._counts: list[int] = []
        self._overview: Overview | None = None
        self._written = -1

    def set_overview(self, overview: Overview) -> None:
        """Show the output of this run."""
        self._overview = overview
        self._counts = [each.count for each in overview.output]
        self._written = -1

    def show_scene(self, scene: Scene) -> None:
        """Show the output up to here."""
        view = self._overview
        if view is None:
            return
        written = bisect_right(self._counts, scene.count - 1)
        if written == self._written:
            return
        self._written = written
        if not view.output:
            self.show([plain("The program wrote nothing.", "dim")])
            return
        rows = _OutputRows(view, written)
        self.show(rows, cursor=max(written - 1, 0) + rows.before, width=rows.width)


class _OutputRows(LazyRows):
    """The lines of the program's output."""

    def __init__(self, view: Overview, written: int) -> None:
        self._view, self._written = view, written
        self.before = 1 if view.output_left_out else 0
        """Number of leading lines that announce omitted output."""

    @property
    def width(self) -> int:
        """Width of the longest line, as far as it is needed."""
        return 8 + max((cell_len(each.text) for each in self._view.output[-2000:]), default=0)

    def __len__(self) -> int:
        return len(self._view.output) + self.before

    def row(self, at: int) -> PanelRow:
        """Return the row at an index from 0 on."""
        at -= self.before
        if at < 0:
            return plain(f"({self._view.output_left_out:,} earlier lines not shown)", "dim")
        each = self._view.output[at]
        is_written = at < self._written
        # A dimmed colour would be hard to read.
        sign = ("! " if each.stream == 2 else "  ", "error" if is_written else "")
        return PanelRow(
            ((f"{each.number:>5} ", "dim"), sign, (each.text, "")),
            key=f"@out:{each.number}",
            style="" if is_written else "never",
        )


class ConsolePanel(Rows):
    """The commands that were typed, and their output."""

    HELP = """\
Commands typed after : and their output. Every debugger command works (`help` lists them); any other input is
evaluated as Python, in a throw-away copy of the program.

  :  type a command; up and down recall earlier ones"""

    def __init__(self) -> None:
        super().__init__("", id="console")
        self._printed: list[ConsoleLine] = []
        self._width = 0

    @property
    def text(self) -> str:
        """The unfolded text, however narrow the panel is."""
        return "\n".join(each.text for each in self._printed)

    def add_lines(self, lines: Sequence[ConsoleLine]) -> None:
        """Add lines."""
        if not lines:
            return
        self._printed = [*self._printed, *lines][-MOST_LINES:]
        self._draw([*self.rows, *self._folded(lines)])

    def on_resize(self) -> None:
        """Fold lines that are too wide again."""
        super().on_resize()
        if self._width != self.scrollable_content_region.width:
            self._draw(list(self._folded(self._printed)))

    def _draw(self, rows: list[PanelRow]) -> None:
        self._width = self.scrollable_content_region.width
        self.show(rows[-MOST_LINES:], cursor=min(len(rows), MOST_LINES) - 1)

    def _folded(self, lines: Sequence[ConsoleLine]) -> Iterator[PanelRow]:
        # One column is reserved for the cursor. A panel without width is not visible: it is folded when it is.
        width = max((self.scrollable_content_region.width or 1000) - 1, 20)
        for each in lines:
            style = _CONSOLE_STYLES.get(each.style, each.style)
            at = 0
            while at == 0 or at < len(each.text):
                line = each.text[at : at + width]
                # Fold at a space, if there is one in the second half; a table has no better place.
                space = line.rfind(" ", width // 2)
                if at + width < len(each.text) and space > 0:
                    line = line[: space + 1]
                yield plain(line.rstrip() if at else line, style)
                at += len(line) or 1


class EventsPanel(Rows):
    """The program's events around this moment; choosing one goes to it."""

    HELP = """\
The events around this moment: the program's inputs from outside.

  enter  go to the moment after the event"""

    def __init__(self) -> None:
        super().__init__("", id="events")


class NotesPanel(Rows):
    """Marks with their notes, and breakpoints."""

    HELP = """\
Marks with their notes, and breakpoints. They are saved next to the recording.

  enter  go to the mark; enable or disable the breakpoint
  delete  delete it
  m  mark this moment (NAME, then a note)"""

    def __init__(self) -> None:
        super().__init__("", id="notes")

    def show_scene(self, scene: Scene) -> None:
        """Show the present marks and breakpoints."""
        rows = [
            PanelRow(
                (
                    (f"{self.glyphs.mark} ", "new"),
                    (f"@{each.name}", "bold"),
                    (f"  {each.moment}", ""),
                    (f"  {each.note}", "string"),
                ),
                each,
            )
            for each in scene.marks
        ]
        for point in scene.points:
            sign = self.glyphs.point if point.is_enabled else self.glyphs.point_off
            off = "" if point.is_enabled else "  (off)"
            rows.append(PanelRow(((f"{sign} ", "error"), (f"{point.number}: {point.text}{off}", "")), point))
        self.show(rows or [plain("No marks: m names this moment. No breakpoints: b sets one.", "dim")])

    @property
    def chosen_mark(self) -> MarkRow | None:
        """The mark under the cursor."""
        key = self.row.key if self.row is not None else None
        return key if isinstance(key, MarkRow) else None

    @property
    def chosen_point(self) -> PointRow | None:
        """The breakpoint under the cursor."""
        key = self.row.key if self.row is not None else None
        return key if isinstance(key, PointRow) else None


TABS = ("output", "console", "events", "notes")


class LowerPanel(Container):
    """The four of them, one of which is visible."""

    def __init__(self) -> None:
        super().__init__(id="lower")

    def compose(self) -> ComposeResult:
        """Create them."""
        with ContentSwitcher(initial="output"):
            yield OutputPanel()
            yield ConsolePanel()
            yield EventsPanel()
            yield NotesPanel()

    def on_mount(self) -> None:
        """Name the tabs."""
        self.select("output")

    @property
    def selected(self) -> str:
        """The visible one."""
        return self.query_one(ContentSwitcher).current or "output"

    @property
    def columns(self) -> int:
        """Columns of a line in it, beside the scroll bar and the cursor; 0: it is not visible."""
        return max(self.content_size.width - 2, 0)

    def select(self, name: str) -> None:
        """Show one of TABS."""
        self.query_one(ContentSwitcher).current = name
        # In capitals, too: colour is not the only signal.
        titles = (f"[b]{each.upper()}[/]" if each == name else f"[@click=app.tab('{each}')]{each}[/]" for each in TABS)
        set_title(self, Content.from_markup(f"6 {' '.join(titles)}"))

    def select_next(self) -> None:
        """Show the next one."""
        self.select(TABS[(TABS.index(self.selected) + 1) % len(TABS)])

    @property
    def rows(self) -> Rows:
        """The rows of the visible one."""
        return self.query_one(f"#{self.selected}", Rows)
