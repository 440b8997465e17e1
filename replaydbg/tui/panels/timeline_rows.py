"""The rows of lanes and of asyncio tasks below the timeline: which there are, and which of them are visible."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from replaydbg.tui.view_model import LaneSpans, TaskSpans, TaskTimes, Track
from replaydbg.tui.widgets.glyphs import Glyphs

LABEL = 10
"""Width of a row's name, if there is more than one row."""

MOST_LABEL = 16
"""The same for longer names of tasks."""

TimelineRow = LaneSpans | TaskSpans


class TimelineRows:
    """The rows of a run: each lane, if there are several, and below it its tasks, in the order in which they began."""

    def __init__(self) -> None:
        self._lanes: tuple[LaneSpans, ...] = ()
        self._times = TaskTimes()
        self.all: tuple[TimelineRow, ...] = ()
        """All rows."""
        self.top = 0
        """The index of the first row that is shown."""
        self.label_width = LABEL
        """Width of the rows' names."""
        self._places: dict[int, int] = {}
        """The index of the row of each task, by the place of the task in the list of all."""

    def set_lanes(self, lanes: tuple[LaneSpans, ...]) -> None:
        """Show when each lane ran."""
        self._lanes = lanes if len(lanes) > 1 else ()
        self._order()

    def set_tasks(self, times: TaskTimes) -> None:
        """Show when each asyncio task ran."""
        self._times = times
        self._order()

    def _order(self) -> None:
        tasks = self._times.tasks
        of_lanes: dict[int, list[int]] = {}
        for number, task in enumerate(tasks):
            of_lanes.setdefault(task.lane, []).append(number)
        rows: list[TimelineRow] = []
        self._places.clear()
        lanes: dict[int, LaneSpans | None] = {each.lane: each for each in self._lanes}
        for lane, row in (lanes | {each: None for each in of_lanes if each not in lanes}).items():
            rows += [row] if row is not None else []
            for number in of_lanes.get(lane, ()):
                self._places[number] = len(rows)
                rows.append(tasks[number])
        self.all = tuple(rows)
        longest = max((len(self.label(each)) for each in tasks), default=0)
        self.label_width = max(LABEL, min(longest + 1, MOST_LABEL))

    def label(self, row: TimelineRow) -> str:
        """Return the name of a row; those of tasks are indented below those of lanes."""
        if isinstance(row, LaneSpans):
            return f"{row.lane} {row.name}"
        return f" {row.name}" if self._lanes else row.name

    # ---- what is visible ----

    def shown(self, room: int) -> tuple[TimelineRow, ...]:
        """Return the rows that are visible if there is room for so many."""
        return self.all[self.top : self.top + room]

    def scroll(self, top: int, room: int) -> None:
        """Show the rows from `top` on, as far as there are enough of them."""
        self.top = max(min(top, len(self.all) - room), 0)

    def reveal(self, lane: int, count: int, room: int) -> None:
        """Scroll until the row of a position is visible: that of the task that runs there, or else of the lane."""
        task = self._times.running(lane, count)
        own = (at for at, each in enumerate(self.all) if isinstance(each, LaneSpans) and each.lane == lane)
        at = self._places[task] if task is not None else next(own, None)
        if at is None:  # the event loop of the only thread runs: what is shown stays
            self.scroll(self.top, room)
            return
        self.scroll(min(max(self.top, at - max(room, 1) + 1), at), room)

    def hidden_text(self, room: int) -> str:
        """Return a hint at rows for which there is no room; empty: all are shown."""
        total = len(self.all)
        if room >= total:
            return ""
        kinds = [*(["threads"] if self._lanes else []), *(["tasks"] if self._times.tasks else [])]
        what = f"{total:,} {' and '.join(kinds)}"
        return f"{room} of {what} (up down)" if room else f"{what}, no room"


def row_cells(
    row: TimelineRow, seen: tuple[int, int], column: Callable[[int], int], width: int, glyphs: Glyphs
) -> list[tuple[str, str]]:
    """Return the cells of a row, with their styles, in a part of the run; `column` returns the column of a line."""
    first, last = seen
    cells = [(glyphs.waits, "dim")] * width
    if isinstance(row, TaskSpans):
        # A task exists only between its first step and its last one.
        begun, ended = column(row.spans[0][0]), column(row.last)
        is_outside = row.last < first or row.spans[0][0] > last
        cells = [(" ", "") if is_outside or not begun <= at <= ended else cells[at] for at in range(width)]
    at = bisect_left(row.spans, first, key=lambda each: each[1])
    for begin, end in row.spans[at:]:
        if begin > last:
            break
        for each in range(column(begin), column(end) + 1):
            cells[each] = (glyphs.runs, "string")
    return cells


def curve_cells(
    track: Track, seen: tuple[int, int], column: Callable[[int], int], width: int, glyphs: Glyphs
) -> list[tuple[str, str]]:
    """Return the cells of a curve in a part of the run; between two levels it stays where it was."""
    first, last = seen
    cells = [(" ", "")] * width
    ends = [each for each, _ in track.levels[1:]] + [last]
    for (begin, level), end in zip(track.levels, ends, strict=True):
        if end < first or begin > last:
            continue
        bar = glyphs.bars[1 + round((len(glyphs.bars) - 2) * level)]
        for at in range(column(max(begin, first)), column(min(end, last)) + 1):
            cells[at] = (bar, "error" if level == 1 else "warning")
    return cells
