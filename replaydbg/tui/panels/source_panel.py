"""Panel 1: the source, with hit counts, the current line, and values beside the lines that set them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from replaydbg.render.source.highlighting import Span
from replaydbg.render.source.values_beside import values_beside
from replaydbg.tui.view_model import Scene, SourceText
from replaydbg.tui.widgets.glyphs import Glyphs
from replaydbg.tui.widgets.plain_text import set_subtitle
from replaydbg.tui.widgets.rows import LazyRows, PanelRow, Piece, Rows

MOST_INLINE = 60
"""Maximum number of characters of values beside a line."""


class SourcePanel(Rows):
    """One source file; it follows the session, and can be scrolled."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "choose", "Visits of this line", show=False),
    ]
    HELP = """\
The recorded source. Left of each line: breakpoint, number of executions in the whole run, current position. Lines
that never ran are dim, with a -. Right of a line: the values that it uses.

  up down  move the cursor
  t T  run to the cursor, forwards and backwards
  b  set or remove a breakpoint at the cursor
  p  print an expression each time this line ran
  enter  list the visits of this line, and go to one
  /  search in the file
  u d  the caller's frame, and back"""

    class PointWanted(Message):
        """A request to toggle a breakpoint at a line."""

        def __init__(self, file: str, line: int) -> None:
            super().__init__()
            self.file = file
            self.line = line

    def __init__(self) -> None:
        super().__init__("1 Source", id="source")
        self._text: SourceText | None = None
        self._scene: Scene | None = None
        self._failed_at: frozenset[tuple[str, int]] = frozenset()

    @property
    def file(self) -> str:
        """The shown file; empty if there is none."""
        return self._text.file if self._text is not None else ""

    @property
    def line(self) -> int:
        """The line under the cursor, from 1."""
        return self.cursor + 1

    def set_failure(self, failed_at: Sequence[tuple[str, int]]) -> None:
        """Mark the lines of the traceback that ended the program."""
        self._failed_at = frozenset(failed_at)

    def show_scene(self, scene: Scene, text: SourceText | None) -> None:
        """Show the session's position; `text` is the file of the selected frame, None if there is none."""
        self._scene, self._text = scene, text
        at = scene.at
        self.draw(at.line if at is not None else None)

    def draw(self, line: int | None = None) -> None:
        """Draw it again, with the cursor at `line`."""
        text, scene = self._text, self._scene
        if text is None or scene is None:
            self.show([PanelRow((("No Python code runs here.", "dim"),))])
            return
        if not text.lines:
            self.show([PanelRow(((f"No source available for {text.file}.", "dim"),))])
            return
        here = scene.at.line if scene.at is not None and scene.at.file == text.file else 0
        rows = _SourceRows(text, scene, here, glyphs=self.glyphs, failed_at=self._failed_at)
        ran = sum(1 for each in text.code if each in text.hits)
        function = f"  {scene.at.function}" if scene.at is not None and here else ""
        place = f":{here}" if here else ""
        count = f"lines ran: {ran}/{len(text.code)}" if text.code else ""
        self.set_title(f"1 Source  {text.title}{place}{function}")
        set_subtitle(self, count)
        self.show(rows, cursor=line - 1 if line is not None else None, width=rows.width)

    def search(self, pattern: str, *, backwards: bool = False) -> bool:
        """Move the cursor to the next line that contains `pattern`, ignoring case; False: there is none."""
        lines = self._text.lines if self._text is not None else ()
        wanted = pattern.casefold()
        step = -1 if backwards else 1
        for distance in range(1, len(lines) + 1):
            at = (self.cursor + step * distance) % len(lines)
            if wanted in lines[at].casefold():
                self.cursor = at
                self.reveal()
                return True
        return False

    def on_click(self, event: events.Click) -> None:
        """Set a breakpoint after a click in front of a line."""
        offset = event.get_content_offset(self)
        at = self._row_at(event)
        if at is not None and offset is not None and offset.x < 1 and self.file:
            self.post_message(self.PointWanted(self.file, at + 1))


class _SourceRows(LazyRows):
    """The lines of a file."""

    def __init__(
        self, text: SourceText, scene: Scene, here: int, *, glyphs: Glyphs, failed_at: frozenset[tuple[str, int]]
    ) -> None:
        self._text, self._here, self._glyphs, self._failed_at = text, here, glyphs, failed_at
        self._hit_width = min(max(len(_short(max(text.hits.values(), default=0))), 3), 6)
        self._digits = len(str(len(text.lines)))
        self._callers = {each.line for each in scene.frames[scene.frame + 1 :] if each.file == text.file}
        self._points = {each.line: each.is_enabled for each in scene.points if each.file == text.file and each.line}
        self._beside = _values_beside(scene, text, here)

    @property
    def width(self) -> int:
        """Approximate width of the longest line."""
        longest = max((cell_len(each) for each in self._text.lines), default=0)
        return longest + self._hit_width + self._digits + MOST_INLINE + 10

    def __len__(self) -> int:
        return len(self._text.lines)

    def row(self, at: int) -> PanelRow:
        """Return the line at an index from 0 on."""
        number = at + 1
        text, here = self._text, self._here
        line, hits = text.lines[number - 1], text.hits.get(number, 0)
        never = number in text.code and not hits
        spans = text.spans[number - 1] if number <= len(text.spans) else ()
        code = [(line, "never")] if never else list(_pieces(line, spans))
        return PanelRow(
            (
                self._point(self._points.get(number)),
                (f"{_short(hits) if hits else '-' if never else '':>{self._hit_width}} ", "dim"),
                self._arrow(number),
                (f"{number:>{self._digits}}  ", "accent" if number == here else "dim"),
                *code,
                *([(f"   {self._beside[number]}", "comment")] if number in self._beside else []),
            ),
            key=number,
            style="current" if number == here else "",
        )

    def _point(self, is_enabled: bool | None) -> Piece:
        if is_enabled is None:
            return " ", ""
        return (self._glyphs.point, "error") if is_enabled else (self._glyphs.point_off, "dim")

    def _arrow(self, number: int) -> Piece:
        failed = (self._text.file, number) in self._failed_at
        sign = self._glyphs.failure if failed else " "
        if number == self._here:
            return f"{sign}{self._glyphs.here}", "error" if failed else "accent"
        if number in self._callers:
            return f"{sign}{self._glyphs.caller}", "error" if failed else "dim"
        return f"{sign} ", "error" if failed else ""


def _short(number: int) -> str:
    """Return a count in a few columns."""
    for limit, unit in ((10_000, ""), (10_000_000, "k"), (10_000_000_000, "M")):
        if number < limit:
            return f"{number // (limit // 10_000)}{unit}"
    return f"{number // 1_000_000_000}G"


def _pieces(line: str, spans: Sequence[Span]) -> Iterator[Piece]:
    at = 0
    for first, last, style in spans:
        if first > at:
            yield line[at:first], ""
        yield line[first:last], style
        at = last
    if at < len(line):
        yield line[at:], ""


def _values_beside(scene: Scene, text: SourceText, here: int) -> Mapping[int, str]:
    """Return values of the selected frame's variables, by line."""
    at = scene.at
    if at is None or not here:
        return {}
    values = {
        each.name: each.text
        for each in scene.values
        if not each.watch and not each.depth and each.mark != "-" and len(each.text) < 200
    }
    found = values_beside(text.lines, here, at.function, values, text.hits)
    return {number: _cut("  ".join(f"{name} = {value}" for name, value in each)) for number, each in found.items()}


def _cut(text: str) -> str:
    return text if len(text) <= MOST_INLINE else text[: MOST_INLINE - 3] + "..."
