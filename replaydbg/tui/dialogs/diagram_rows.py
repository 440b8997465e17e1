"""A space-time diagram as lines of text: time goes down, a column for each process, the cut as a horizontal line."""

from __future__ import annotations

from itertools import groupby

from replaydbg.tui.diagram_model import DiagramAnswer, DiagramArrowRow
from replaydbg.tui.widgets.glyphs import Glyphs
from replaydbg.tui.widgets.rows import PanelRow

WIDEST, NARROWEST = 16, 5
"""Width of a process's column."""

ROOM = 40
"""Width of all columns together, as long as each has NARROWEST."""

TEXT = 26
"""Width that is left to the texts beside the columns."""

CUT = -1
"""In place of an event: the line of the cut."""


class DiagramText:
    """The lines of a diagram. A message that is received right after it was sent takes one line, others two or more."""

    def __init__(self, answer: DiagramAnswer, glyphs: Glyphs, room: int = 0) -> None:
        """`room` is the width in which the lines have to fit, as far as they can; 0: it is not limited.

        If not all columns fit, those around the process under the cursor are shown.
        """
        self._answer, self._glyphs = answer, glyphs
        self._columns = {each: at for at, each in enumerate(answer.processes)}
        count = max(len(self._columns), 1)
        self.width = max(NARROWEST, min(WIDEST, ROOM // count))
        self._cells = count * self.width
        self._label = max((len(each.label) for each in answer.rows), default=0)
        self._starts = {arrow.source for arrow in answer.arrows if arrow.is_start}
        self._merged = self._adjacent()
        self._shown = self._lines()
        self._row_of = {event: at for at, event in enumerate(self._shown)}
        self._row_of |= {arrow.target: self._row_of[source] for source, arrow in self._merged.items() if arrow.target}
        self.line = self._shown.index(CUT)
        """The index of the cut's line."""
        self._visible = self._fitting(room)
        self._text = [[" "] * self._cells for _ in self._shown]
        self._style = [[""] * self._cells for _ in self._shown]
        self._draw()

    # ---- places ----

    def at(self, process: int) -> int:
        """Return the cell of a process's lane."""
        return self._columns[process] * self.width + self.width // 2

    @property
    def first_cell(self) -> int:
        """The number of cells before the columns."""
        return self._label + 1

    def _fitting(self, room: int) -> slice:
        """Return the cells of the columns that are shown."""
        if not room or not self._columns:
            return slice(0, self._cells)
        cells = max(room - self.first_cell - TEXT, 3 * self.width)
        first = self.at(self._answer.process) - cells // 2
        first = max(0, min(first, self._cells - cells))
        return slice(first, first + cells)

    def _adjacent(self) -> dict[int, DiagramArrowRow]:
        """Return the arrows that take one line, by the event at which they begin."""
        ends: dict[int, int] = {}
        for arrow in self._answer.arrows:
            for end in (arrow.source, arrow.target):
                if end is not None:
                    ends[end] = ends.get(end, 0) + 1
        line = self._answer.line
        return {
            arrow.source: arrow
            for arrow in self._answer.arrows
            if arrow.target == arrow.source + 1
            and arrow.target != line
            and ends[arrow.source] == ends[arrow.target] == 1
            and self._process(arrow.source) != self._process(arrow.target)
        }

    def _process(self, event: int) -> int:
        return self._answer.rows[event].process

    def _lines(self) -> list[int]:
        """Return the event of each line, and CUT once."""
        hidden = {arrow.target for arrow in self._merged.values()}
        events = [each for each in range(len(self._answer.rows)) if each not in hidden]
        line = self._answer.line
        return [*(each for each in events if each < line), CUT, *(each for each in events if each >= line)]

    # ---- drawing ----

    def _draw(self) -> None:
        self._lanes()
        line, glyphs = self.line, self._glyphs
        for cell in range(self._cells):
            is_lane = self._text[line][cell] == glyphs.pillar
            self._put(line, cell, glyphs.cut_lane if is_lane else glyphs.cut, "")
        until: dict[int, int] = {}
        for arrow in sorted(self._answer.arrows, key=lambda each: each.source):
            self._arrow(arrow, until)
        for row, event in enumerate(self._shown):
            if event != CUT and not self._has_head(row, self.at(self._process(event))):
                self._point(row, event)

    def _lanes(self) -> None:
        for process in self._columns:
            own = [at for at, each in enumerate(self._answer.rows) if each.process == process]
            first = next((self._row_of[at] for at in own if self._answer.rows[at].is_begin), 0)
            last = next((self._row_of[at] for at in own if self._answer.rows[at].is_end), len(self._shown) - 1)
            style = "" if process == self._answer.process else "dim"
            for row in range(first, last + 1):
                self._put(row, self.at(process), self._glyphs.pillar, style)

    def _put(self, row: int, cell: int, text: str, style: str) -> None:
        self._text[row][cell], self._style[row][cell] = text, style

    def _has_head(self, row: int, cell: int) -> bool:
        return self._text[row][cell] in (self._glyphs.here, self._glyphs.left)

    def _point(self, row: int, event: int) -> None:
        each, glyphs = self._answer.rows[event], self._glyphs
        text = glyphs.ends[0] if each.is_begin else glyphs.ends[1] if each.is_end else glyphs.point
        text = glyphs.point_off if event in self._starts else text
        self._put(row, self.at(each.process), text, self._style_of(each.process))

    def _style_of(self, process: int) -> str:
        return "bold" if process == self._answer.process else ""

    def _arrow(self, arrow: DiagramArrowRow, until: dict[int, int]) -> None:
        source = self._process(arrow.source)
        style = "warning" if arrow.is_in_flight else self._style_of(source) or self._style_of(arrow.to)
        first = self._row_of[arrow.source]
        last = self._row_of[arrow.target] if arrow.target is not None else len(self._shown) - 1
        begin, end = self.at(source), self.at(arrow.to)
        if arrow.source in self._merged:
            track = begin
            self._level(first, begin, end, arrow, style)
        else:
            found = self._track(begin, end, first, last, until)
            # More messages at once than the column has cells: the texts beside both ends name the other one.
            track = found if found is not None else end - 1 if end > begin else end + 1
            if found is not None:
                self._down(first, last, track, arrow, style)
                self._turn(first, track, is_left=begin < track, is_down=True, arrow=arrow, style=style)
            self._level(first, begin, track, arrow, style)
            if arrow.target is not None:
                self._turn(last, track, is_left=end < track, is_down=False, arrow=arrow, style=style)
                self._level(last, track, end, arrow, style)
        if arrow.target is not None:
            self._put(last, end, self._glyphs.here if end > track else self._glyphs.left, style)

    def _track(self, begin: int, end: int, first: int, last: int, until: dict[int, int]) -> int | None:
        """Return a free cell beside the lane at which an arrow ends, on the side from which it comes; None: none."""
        side = -1 if end > begin else 1
        for distance in [*range(2, self.width), 1]:
            cell: int = end + side * distance
            if 0 <= cell < self._cells and until.get(cell, -1) < first:
                until[cell] = last
                return cell
        return None

    def _down(self, first: int, last: int, cell: int, arrow: DiagramArrowRow, style: str) -> None:
        glyphs = self._glyphs
        for row in range(first + 1, last + (arrow.target is None)):
            text = glyphs.heavy_track if arrow.is_in_flight else glyphs.track
            is_crossing = row == self.line and arrow.is_in_flight
            self._put(row, cell, glyphs.crossing if is_crossing else text, style)

    def _turn(self, row: int, cell: int, *, is_left: bool, is_down: bool, arrow: DiagramArrowRow, style: str) -> None:
        """Draw a corner: of an arrow that goes down from here, or comes from above; its other part is at the left."""
        turns = self._glyphs.heavy_turns if arrow.is_in_flight else self._glyphs.turns
        at = (0 if is_left else 1) if is_down else (3 if is_left else 2)
        self._put(row, cell, turns[at], style)

    def _level(self, row: int, begin: int, end: int, arrow: DiagramArrowRow, style: str) -> None:
        """Draw a horizontal part between two cells, without these."""
        glyphs = self._glyphs
        rule = glyphs.waits if arrow.is_start else glyphs.runs if arrow.is_in_flight else glyphs.rule
        for cell in range(min(begin, end) + 1, max(begin, end)):
            crossed = self._text[row][cell] != " " and not arrow.is_start
            self._put(row, cell, glyphs.cross if crossed else rule, style)

    # ---- lines ----

    @property
    def head(self) -> str:
        """The numbers of the processes above their columns, that under the cursor in brackets."""
        line = [" "] * self._cells
        for process in self._columns:
            text = f"[{process}]" if process == self._answer.process else str(process)
            first = self.at(process) - len(text) // 2
            line[first : first + len(text)] = text
        return " " * self.first_cell + "".join(line[self._visible]).rstrip()

    def rows(self) -> list[PanelRow]:
        """Return the lines."""
        texts = self._texts()
        return [self._row(row, event, texts) for row, event in enumerate(self._shown)]

    def _row(self, row: int, event: int, texts: dict[int, str]) -> PanelRow:
        cells = zip(self._text[row][self._visible], self._style[row][self._visible], strict=True)
        pieces = [("".join(text for text, _ in run), style) for style, run in groupby(cells, key=lambda cell: cell[1])]
        if event == CUT:
            what = "quiet cut" if self._answer.is_quiet else "cut"
            return PanelRow(((" " * self.first_cell, ""), *pieces, (f"  {what}", "bold")))
        each = self._answer.rows[event]
        style = "bold" if each.process == self._answer.process else ""
        label = (f"{each.label:<{self._label}} ", style)
        return PanelRow((label, *pieces, (f"  {texts.get(event, each.text)}", style or "dim")), each)

    def _texts(self) -> dict[int, str]:
        """Return the text beside each event at which an arrow begins or ends."""
        found: dict[int, list[str]] = {}
        rows = self._answer.rows
        for arrow in self._answer.arrows:
            other = rows[arrow.target].label if arrow.target is not None else "nobody"
            if arrow.source in self._merged:
                found.setdefault(arrow.source, []).append(f"{'' if arrow.is_start else other + '  '}{arrow.text}")
                continue
            verb = "starts" if arrow.is_start else "to"
            found.setdefault(arrow.source, []).append(f"{verb} {other}  {arrow.text}")
            if arrow.target is not None:
                verb = "started by" if arrow.is_start else "from"
                found.setdefault(arrow.target, []).append(f"{verb} {rows[arrow.source].label}  {arrow.text}")
        return {event: "; ".join(texts) for event, texts in found.items()}
