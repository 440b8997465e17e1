"""The messages between the processes of a group: a column for each process, an arrow for each message."""

from __future__ import annotations

from replaydbg.tui.dialogs.dialog import Dialog
from replaydbg.tui.view_model import ChartAnswer, ChartRow
from replaydbg.tui.widgets.glyphs import Glyphs
from replaydbg.tui.widgets.rows import PanelRow, plain

WIDEST, NARROWEST = 16, 5
"""Width of a process's column."""

ROOM = 72
"""Width of all columns together, as long as each has NARROWEST."""


class MessageChartDialog(Dialog):
    """A list of messages in the order in which they were sent; the key of a row is its ChartRow."""

    def __init__(self, answer: ChartAnswer, glyphs: Glyphs) -> None:
        chart = _Chart(answer, glyphs)
        rows = [chart.row(each) for each in answer.rows] or [plain("No messages between recorded processes.", "dim")]
        hint = "Enter goes to the other end"
        super().__init__(answer.title, rows, cursor=answer.at, hint=hint, head=chart.head, is_late=True)


class _Chart:
    """Draws the rows of a chart."""

    def __init__(self, answer: ChartAnswer, glyphs: Glyphs) -> None:
        self._answer, self._glyphs = answer, glyphs
        self._width = max(NARROWEST, min(WIDEST, ROOM // max(len(answer.processes), 1)))
        self._label = max((len(each.sent) for each in answer.rows), default=0)

    def _at(self, column: int) -> int:
        return column * self._width + self._width // 2

    @property
    def head(self) -> str:
        """The numbers of the processes above their columns, the selected one in brackets."""
        line = [" "] * (len(self._answer.processes) * self._width)
        for column, number in enumerate(self._answer.processes):
            text = f"[{number}]" if number == self._answer.process else str(number)
            first = self._at(column) - len(text) // 2
            line[first : first + len(text)] = text
        return " " * (self._label + 1) + "".join(line).rstrip()

    def row(self, each: ChartRow) -> PanelRow:
        """Return the row of a message."""
        glyphs, processes = self._glyphs, self._answer.processes
        line = [" "] * (len(processes) * self._width)
        for column in range(len(processes)):
            line[self._at(column)] = glyphs.pillar
        source, target = self._at(each.source), self._at(each.target)
        first, last = min(source, target), max(source, target)
        line[first : last + 1] = (glyphs.rule if each.received else glyphs.waits) * (last - first + 1)
        line[source] = glyphs.point if each.received else glyphs.point_off
        line[target] = glyphs.here if target > source else glyphs.left
        is_own = self._answer.process in (processes[each.source], processes[each.target])
        text = "".join(line)
        pieces = (
            (f"{each.sent:<{self._label}} ", "bold" if is_own else ""),
            (text[:first], "dim"),
            (text[first : last + 1], "accent" if is_own else ""),
            (text[last + 1 :], "dim"),
            (f"  {each.received}" if each.received else "", "bold" if is_own else ""),
            (f"  {each.text}", "dim"),
        )
        return PanelRow(pieces, each)
