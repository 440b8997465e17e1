"""Panel 5: the run from left to right, and the current position in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from replaydbg.tui.panels.timeline_rows import TimelineRows, curve_cells, row_cells
from replaydbg.tui.ui_messages import Scrubbed
from replaydbg.tui.view_model import LaneSpans, Overview, Scene, TaskSpans, TaskTimes, TimelineMark, Track
from replaydbg.tui.widgets.glyphs import UNICODE, Glyphs
from replaydbg.tui.widgets.plain_text import set_subtitle, set_title
from replaydbg.tui.widgets.rows import STYLES

MOST_ROWS = 6
"""Number of rows of lanes and tasks that the panel asks for room for; the others are reached by scrolling."""

_Line = Callable[[], tuple[str, Iterable[tuple[str, str]]]]
"""Draws a line: returns its label, and its cells with their styles."""


class TimelinePanel(Widget, can_focus=True):
    """Density of events, snapshots, exceptions, marks; a row for each lane, each asyncio task and each query."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--cursor", *(f"rows--{each}" for each in STYLES)}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "move(-1)", "Back", show=False, id="timeline.left"),
        Binding("right,l", "move(1)", "On", show=False, id="timeline.right"),
        Binding("shift+left,pageup", "move(-10)", "Ten columns back", show=False),
        Binding("shift+right,pagedown", "move(10)", "Ten columns forward", show=False),
        Binding("home", "to_edge(0)", "Start", show=False),
        Binding("end", "to_edge(1)", "End", show=False),
        Binding("plus", "zoom(4)", "Closer", show=False),
        Binding("minus", "zoom(0.25)", "Wider", show=False),
        Binding("0", "zoom(0)", "The whole run", show=False),
        Binding("up", "scroll_lanes(-1)", "Rows above", show=False),
        Binding("down", "scroll_lanes(1)", "Rows below", show=False),
    ]
    HELP = """\
The run from the program's first line to its end. Bars: events (inputs from outside). Signs above them: snapshots,
exceptions, marks. Below: when each thread and each asyncio task ran, and the rows added by p and b.

  left right  move the session; with shift, or by pageup and pagedown, ten columns
  home end  go to the first line, or to the last one
  + - 0  zoom in, zoom out, the whole run
  up down  show other threads and tasks
  delete  remove the last row
  mouse  click or drag to move, wheel to zoom"""
    count: reactive[int] = reactive(0)

    class RangeWanted(Message):
        """A request to show another part of the run."""

        def __init__(self, first: int, last: int) -> None:
            super().__init__()
            self.first = first
            self.last = last

    def __init__(self) -> None:
        super().__init__(id="timeline")
        self._first, self._last = 1, 2
        self._density: tuple[int, ...] = ()
        set_title(self, "5 Timeline")
        self.glyphs: Glyphs = UNICODE
        self._overview: Overview | None = None
        self._scene: Scene | None = None
        self.rows = TimelineRows()
        """The rows of lanes and tasks."""
        self._range_text = ""
        self._tracks: dict[str, Track] = {}
        self._is_dragged = False
        self._signs_drawn: tuple[object, list[tuple[str, str]]] = None, []
        """The last signs, which a step does not change: there may be thousands."""

    # ---- content ----

    def begin(self, overview: Overview) -> None:
        """Show another run, without the rows of the one before."""
        self._overview, self._scene = None, None
        self.rows, self._tracks = TimelineRows(), {}
        self._range_text = ""
        set_title(self, f"5 Timeline  process {overview.process}" if overview.process else "5 Timeline")
        self._name_hidden()
        self.set_overview(overview)

    def set_overview(self, overview: Overview) -> None:
        """Show this run."""
        is_new = self._overview is None
        self._overview = overview
        if is_new:
            self._first, self._last, self._density = overview.first, overview.last, overview.density
        self.refresh(layout=True)

    def set_range(self, first: int, last: int, density: tuple[int, ...]) -> None:
        """Show a part of the run, given the number of events in each of equal stretches."""
        self._first, self._last, self._density = first, last, density
        view = self._overview
        is_whole = view is not None and (first, last) == (view.first, view.last)
        self._range_text = "" if is_whole else f"lines {first:,} to {last:,} of the run (0 shows all)"
        self._name_hidden()
        self.refresh()

    def set_lanes(self, lanes: tuple[LaneSpans, ...]) -> None:
        """Show when each lane ran."""
        self.rows.set_lanes(lanes)
        self._reveal_row()
        self.refresh(layout=True)

    def set_tasks(self, times: TaskTimes) -> None:
        """Show when each asyncio task ran."""
        self.rows.set_tasks(times)
        self._reveal_row()
        self.refresh(layout=True)

    def set_track(self, track: Track) -> None:
        """Show a row of moments, in place of the one with the same key; without a title, remove it."""
        self._tracks[track.key] = track
        if not track.title:
            del self._tracks[track.key]
        self._reveal_row()
        self.refresh(layout=True)

    def remove_last_track(self) -> None:
        """Remove the row of moments that was added last."""
        if self._tracks:
            self._tracks.popitem()
            self._reveal_row()
            self.refresh(layout=True)

    @property
    def tracks(self) -> tuple[Track, ...]:
        """The rows of moments."""
        return tuple(self._tracks.values())

    def show_scene(self, scene: Scene) -> None:
        """Show the session's position."""
        self._scene = scene
        self.count = scene.count
        self._reveal_row()
        if self._overview is not None and not self._first <= scene.count <= self._last:
            # The position is outside the shown part: move that, with the same width, around the position.
            self._want(scene.count, self._last - self._first)
        self.refresh()

    def rows_wanted(self) -> int:
        """Return how many lines it would fill."""
        return 3 + min(len(self.rows.all), MOST_ROWS) + len(self._tracks)

    # ---- lanes and tasks ----

    @property
    def _room(self) -> int:
        """Number of rows of lanes and tasks for which there is room; rows of queries come first."""
        return max(self.content_size.height - 3 - len(self._tracks), 0)

    def _reveal_row(self) -> None:
        """Scroll until the row of the session's position is visible: that of the task that runs, or of the lane."""
        if self._scene is not None:
            self.rows.reveal(self._scene.lane_number, self._scene.count, self._room)
        self._name_hidden()
        self.refresh()

    def _name_hidden(self) -> None:
        """Say in the border which part of the run, and which of its rows are shown."""
        parts = [each for each in (self._range_text, self.rows.hidden_text(self._room)) if each]
        set_subtitle(self, "   ".join(parts))

    def on_resize(self) -> None:
        """Show as many rows as fit."""
        self._reveal_row()

    def action_scroll_lanes(self, by: int) -> None:
        """Show the rows above, or those below."""
        self.rows.scroll(self.rows.top + by, self._room)
        self._name_hidden()
        self.refresh()

    # ---- columns ----

    @property
    def _label(self) -> int:
        return self.rows.label_width if self.rows.all or self._tracks else 0

    def _columns(self) -> int:
        return max(self.content_size.width - self._label, 1)

    def column(self, count: int) -> int:
        """Return the column of a line of the run."""
        return self._column_of()(count)

    def _column_of(self) -> Callable[[int], int]:
        """Return `column` as a fast function, for the thousands of lines of a long run."""
        first, span, width = self._first, self._last - self._first + 1, self._columns()
        return lambda count: max(0, min((count - first) * width // span, width - 1))

    def count_at(self, column: int) -> int:
        """Return the first line of the run in a column."""
        width = self._columns()
        if column >= width - 1:
            return self._last
        span = self._last - self._first + 1
        return self._first - (-column * span // width) if column > 0 else self._first

    # ---- drawing ----

    def render_line(self, y: int) -> Strip:
        """Draw one line."""
        width = self.content_size.width
        base = self.rich_style
        drawn = self._lines() if self._overview is not None else []
        if y >= len(drawn):
            return Strip.blank(width, base)
        label, cells = drawn[y]()
        segments = []
        if self._label and y < len(drawn) - 1:
            segments = [Segment(f"{label:<{self._label}}"[: self._label], base + self._style("dim"))]
        segments += [Segment(text, base + self._style(style) if style else base) for text, style in cells]
        return Strip(segments).adjust_cell_length(width, base)

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(f"rows--{name}", partial=True)

    def _lines(self) -> list[_Line]:
        tracks: list[_Line] = [partial(self._track, each) for each in self._tracks.values()]
        lanes: list[_Line] = [partial(self._row, each) for each in self.rows.shown(self._room)]
        room = max(self.content_size.height - 3, 0)
        if self.content_size.height < 3:
            return [self._bars, lambda: ("", self._words())]
        return [self._signs, self._bars, *[*tracks, *lanes][:room], lambda: ("", self._words())]

    def _signs(self) -> tuple[str, Iterable[tuple[str, str]]]:
        view, glyphs = self._overview, self.glyphs
        assert view is not None, "nothing is drawn before"
        cells, column = [(" ", "")] * self._columns(), self._column_of()
        shown = (view, self._first, self._last, len(cells), self._marks())
        if self._signs_drawn[0] == shown:
            return "", self._signs_drawn[1]
        for marks, sign, style in (
            (view.exceptions, glyphs.failure, "warning"),
            (view.snapshots, glyphs.snapshot, "accent"),
            (self._marks(), glyphs.mark, "new"),
            ((view.failure,) if view.failure is not None else (), glyphs.failure, "error"),
        ):
            for mark in self._seen(marks):
                cells[column(mark.count)] = (sign, style)
        self._signs_drawn = shown, cells
        return "", cells

    def _seen(self, marks: Iterable[TimelineMark]) -> Iterator[TimelineMark]:
        return (each for each in marks if self._first <= each.count <= self._last)

    def _marks(self) -> Sequence[TimelineMark]:
        return [TimelineMark(each.count) for each in self._scene.marks] if self._scene is not None else []

    def _bars(self) -> tuple[str, Iterable[tuple[str, str]]]:
        bars, density = self.glyphs.bars, self._density
        width, bins = self._columns(), len(density)
        sums = [
            sum(density[bins * at // width : max(bins * (at + 1) // width, bins * at // width + 1)])
            for at in range(width)
        ]
        most = max(sums, default=0) or 1
        here = self.column(self.count)
        cells = []
        for at, number in enumerate(sums):
            height = 1 + round((len(bars) - 2) * (number / most) ** 0.5) if number else 0
            style = "accent" if at <= here else "dim"
            cells.append((self.glyphs.cursor, "error") if at == here else (bars[height], style))
        return "events", cells

    def _row(self, row: LaneSpans | TaskSpans) -> tuple[str, Iterable[tuple[str, str]]]:
        seen, column = (self._first, self._last), self._column_of()
        cells = row_cells(row, seen, column, self._columns(), self.glyphs)
        here = column(self.count)
        cells[here] = (cells[here][0], "error")
        return self.rows.label(row), cells

    def _track(self, track: Track) -> tuple[str, Iterable[tuple[str, str]]]:
        cells, column = [(" ", "")] * self._columns(), self._column_of()
        if track.levels:
            return track.title, curve_cells(track, (self._first, self._last), column, len(cells), self.glyphs)
        # Of several marks in a column the important ones are shown.
        for mark in sorted(self._seen(track.marks), key=lambda each: not each.is_faint):
            faint, important = (self.glyphs.point_off, "dim"), (self.glyphs.point, "warning")
            cells[column(mark.count)] = faint if mark.is_faint else important
        return track.title, cells

    def _words(self) -> Iterator[tuple[str, str]]:
        scene, view = self._scene, self._overview
        if scene is None or view is None:
            return
        yield f"event {scene.event:,} / {view.events:,}", "bold"
        yield f"  {scene.moment}  {scene.percent}", ""
        before = [each for each in view.snapshots if each.count <= scene.count]
        if before:
            yield f"  snapshot {before[-1].text}", ""
        if scene.seconds is not None:
            yield f"  t+{scene.seconds:.3f}s", ""
        yield f"  {scene.lane}", ""
        if scene.direction:
            yield f"  n s f c go {scene.direction}", "warning"
        if scene.is_changed:
            yield "  changed: this run differs from the recording", "warning"
        glyphs = self.glyphs
        legend = [f"{glyphs.failure} exception"] if view.exceptions or view.failure else []
        legend += [f"{glyphs.snapshot} snapshot"] if view.snapshots else []
        legend += [f"{glyphs.mark} mark"] if self._marks() else []
        legend += [f"{glyphs.point} hit"] if self._tracks.keys() - {"bisect", "futures"} else []
        legend += [f"{glyphs.point} bad  {glyphs.point_off} not bad"] if "bisect" in self._tracks else []
        legend += ["futures that fail"] if "futures" in self._tracks else []
        yield f"   {'  '.join(legend)}", "dim"

    # ---- input ----

    def action_move(self, by: int) -> None:
        """Move by a number of columns."""
        if self._overview is None:
            return
        view = self._overview
        at = self.column(self.count) + by
        count = self.count_at(max(0, min(at, self._columns() - 1)))
        # In a short run several columns are one line: move to another line in any case.
        count = min(count, self.count - 1) if by < 0 else max(count, self.count + 1)
        self._go(max(view.first, min(count, view.last)))

    def action_zoom(self, factor: float) -> None:
        """Show less of the run, or more; with 0 all of it."""
        view = self._overview
        if view is None:
            return
        whole = view.last - view.first
        span = round((self._last - self._first) / factor) if factor else whole
        self._want(self.count, max(min(span, whole), min(self._columns(), whole)))

    def _want(self, middle: int, span: int) -> None:
        assert self._overview is not None, "nothing is shown before"
        view = self._overview
        first = max(view.first, min(middle - span // 2, view.last - span))
        if (first, first + span) != (self._first, self._last):
            self.post_message(self.RangeWanted(first, first + span))

    def action_to_edge(self, edge: int) -> None:
        """Go to the beginning, or the end."""
        if self._overview is not None:
            self._go(self._overview.last if edge else self._overview.first)

    def _go(self, count: int) -> None:
        # It is shown at once; the session follows later.
        self.count = count
        self.post_message(Scrubbed(count))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Go there, and follow the mouse."""
        self.focus()
        self.capture_mouse()
        self._is_dragged = True
        self._follow(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Go where it is dragged."""
        if self._is_dragged:
            self._follow(event)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Show less of the run."""
        event.stop()
        self.action_zoom(2)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Show more of it."""
        event.stop()
        self.action_zoom(0.5)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Stop following the mouse."""
        self._is_dragged = False
        self.release_mouse()

    def _follow(self, event: events.MouseEvent) -> None:
        if self._overview is None:
            return
        column = event.x - self.gutter.left - self._label
        count = self.count_at(max(0, min(column, self._columns() - 1)))
        if self.column(count) != self.column(self.count):
            self._go(count)
