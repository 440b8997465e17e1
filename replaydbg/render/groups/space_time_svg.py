"""A space-time diagram as an SVG drawing: time from left to right, a lane for each process, a line for the cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from replaydbg.distributed.space_time import EventKind, PlacedArrow
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.groups.space_time import DrawnMessage, SpaceTimeDiagram
from replaydbg.render.groups.cuts_text import cut_text, position_rows
from replaydbg.render.groups.invariants_text import counted
from replaydbg.render.groups.processes_text import command_text, ended_text, started_text
from replaydbg.render.groups.space_time_text import clipped, diagram_remarks, flying_cells, message_text
from replaydbg.render.groups.svg_canvas import CHARACTER, Spot, SvgCanvas, between

_STEP = 24.0
"""Pixels from one event to the next."""
_GAP = 3
"""Steps that the line of the cut takes."""
_LEFT, _TOP, _MARGIN = 190.0, 76.0, 20.0
_ROW = 17.0
"""Height of a line of text."""
_WIDEST_NAME = 25
_BADGE = 8.0
"""Radius of the circle with the number of a message in flight."""
_LEGEND = (
    ("lane", "process, in the cut"),
    ("later", "after it"),
    ("message", "message"),
    ("flying", "message in flight"),
    ("start", "start of a process"),
    ("cut", "cut"),
)


def space_time_svg(opened: OpenedGroup, diagram: SpaceTimeDiagram, *, is_embedded: bool = False) -> bytes:
    """Return the drawing of a cut: a complete SVG file, or, if `is_embedded`, an element of a page."""
    return _Drawing(opened, diagram, is_embedded=is_embedded).to_bytes()


class _Drawing:
    """One drawing, from the top down."""

    def __init__(self, opened: OpenedGroup, diagram: SpaceTimeDiagram, *, is_embedded: bool) -> None:
        self._opened, self._diagram, self._layout = opened, diagram, diagram.layout
        self._rows = {each.number: each for each in opened.group.processes}
        self._lanes = {process: at for at, process in enumerate(self._layout.processes)}
        self._height = 60.0 if len(self._lanes) <= 12 else 40.0
        self._end = _LEFT + (len(self._layout.events) + _GAP) * _STEP
        self._cut = _LEFT + (self._layout.line + _GAP / 2) * _STEP
        self._width = self._end + _MARGIN
        positions = cut_text(diagram.cut.positions)
        self._title = clipped(f"{'Quiet cut' if diagram.cut.is_quiet else 'Cut'} of {opened.name}: {positions}")
        self._canvas = SvgCanvas(self._title, " ".join(self._description()), is_embedded=is_embedded)

    def _description(self) -> Iterator[str]:
        flying = [self._diagram.messages[each] for each in self._diagram.flying]
        yield (
            f"A space-time diagram; lanes from top to bottom: process {', '.join(map(str, list(self._lanes)[:50]))}. "
            "Time goes from left to right. The vertical line is the cut: what is left of it had happened."
        )
        yield f"In flight across it: {counted(len(flying), 'message') if flying else 'nothing'}."
        for number, each in enumerate(flying, 1):
            yield f"{number}: {', '.join(flying_cells(self._opened, each))}."
        yield from diagram_remarks(self._opened, self._diagram)

    def to_bytes(self) -> bytes:
        """Draw everything."""
        canvas, bottom = self._canvas, _TOP + (len(self._lanes) - 1) * self._height + 40
        canvas.text(Spot(_MARGIN, 28), self._title, "title")
        for process in self._layout.processes:
            self._lane(process)
        is_sure = not self._diagram.cut.doubts
        canvas.line(Spot(self._cut, _TOP - 26), Spot(self._cut, bottom - 10), "cut")
        canvas.text(Spot(self._cut + 5, _TOP - 18), "cut" if is_sure else "cut, perhaps not consistent", "strong")
        flying = {at: number for number, at in enumerate(self._diagram.flying, 1)}
        for is_flying in (False, True):
            for at, placed in enumerate(self._layout.arrows):
                if placed is not None and (at in flying) is is_flying:
                    self._arrow(placed, self._diagram.messages[at], flying.get(at, 0))
            if not is_flying:
                self._events()
        bottom = self._legend(bottom + 8)
        bottom = self._texts(bottom)
        return canvas.to_bytes(self._width, bottom)

    # ---- places ----

    def _x(self, event: int) -> float:
        return _LEFT + (event + 0.5 + (_GAP if event >= self._layout.line else 0)) * _STEP

    def _y(self, process: int) -> float:
        return _TOP + self._lanes[process] * self._height

    def _spot(self, event: int) -> Spot:
        return Spot(self._x(event), self._y(self._layout.events[event].process))

    # ---- lanes ----

    def _lane(self, process: int) -> None:
        y, row = self._y(process), self._rows[process]
        name = command_text(row) or started_text(row)
        group = self._canvas.group(f"Process {process}: {clipped(name)}, {ended_text(row)}")
        self._canvas.text(Spot(_MARGIN, y - 3), clipped(f"{process}  {name}", _WIDEST_NAME), "strong", within=group)
        position, last = self._diagram.cut.positions[process], self._diagram.last[process]
        state = f"event {position:,} of {last:,}" if position else f"not begun, of {last:,}"
        if position >= last and row.status:
            state = f"{position:,}, {ended_text(row)}"
        self._canvas.text(Spot(_MARGIN, y + 11), state, "dim", within=group)
        ends = {
            each.kind: self._x(at)
            for at, each in enumerate(self._layout.events)
            if each.process == process and each.kind in (EventKind.BEGIN, EventKind.END)
        }
        first, last_x = ends.get(EventKind.BEGIN, _LEFT), ends.get(EventKind.END, self._end)
        if EventKind.BEGIN not in ends:
            self._canvas.line(Spot(first - 14, y), Spot(first, y), "beyond", within=group)
        if EventKind.END not in ends:
            self._canvas.line(Spot(last_x, y), Spot(last_x + 14, y), "beyond", within=group)
        middle = min(max(self._cut, first), last_x)
        if first < middle:
            self._canvas.line(Spot(first, y), Spot(middle, y), "lane", within=group)
        if middle < last_x:
            self._canvas.line(Spot(middle, y), Spot(last_x, y), "later", within=group)
        if position:
            self._canvas.text(Spot(self._cut + 4, y - 5), f"@{position}", "dim", within=group)

    def _events(self) -> None:
        for at, event in enumerate(self._layout.events):
            x, y = self._spot(at)
            if event.kind in (EventKind.BEGIN, EventKind.END):
                self._canvas.line(Spot(x, y - 7), Spot(x, y + 7), "end")
            else:
                self._canvas.circle(Spot(x, y), 3.6, "event")

    # ---- messages ----

    def _arrow(self, placed: PlacedArrow, message: DrawnMessage, number: int) -> None:
        canvas = self._canvas
        source = self._spot(placed.source)
        target = self._spot(placed.target) if placed.target is not None else self._nowhere(source, message)
        kind = "start" if message.is_start else "flying" if number else "message"
        group = canvas.group(f"{message_text(message)}, {self._ends(message)}")
        tip = "flying-tip" if number else "tip"
        badge = between(source, target, 2 * _BADGE + 2)
        if target.y == source.y:
            # A process that sent to itself: an arc beside its lane.
            corner = Spot((source.x + target.x) / 2, source.y - 40)
            curve = f"M {source.x:.1f} {source.y:.1f} Q {corner.x:.1f} {corner.y:.1f} {target.x:.1f} {target.y:.1f}"
            canvas.path(curve, kind, within=group)
            canvas.tip(between(target, corner, 4), corner, tip, within=group)
            badge = Spot(corner.x, source.y - 20)
        else:
            end = between(target, source, 4)
            canvas.line(source, between(end, source, 6) if placed.target is not None else end, kind, within=group)
            if placed.target is not None:
                canvas.tip(end, source, tip, within=group)
        if placed.target is None:
            for side in (-5, 5):
                canvas.line(
                    Spot(target.x - 5, target.y - side), Spot(target.x + 5, target.y + side), kind, within=group
                )
        if number:
            canvas.circle(badge, _BADGE, "badge", within=group)
            canvas.text(Spot(badge.x, badge.y + 4), str(number), "number", within=group)

    def _nowhere(self, source: Spot, message: DrawnMessage) -> Spot:
        """Return where the arrow of a message ends that nobody received: across the line, towards who could have."""
        lanes = [self._y(each) for each in message.to if each in self._lanes]
        down = 1 if not lanes or max(lanes) > source.y else -1
        return Spot(self._cut + _STEP, source.y + down * self._height * 0.4)

    def _ends(self, message: DrawnMessage) -> str:
        source, target = message.source, message.target
        first = f"{source.process}@{source.event or source.begun + 1}"
        if target is None:
            return f"from {first}, received by nobody"
        return f"from {first} to {target.process}@{target.event or target.begun + 1}"

    # ---- texts ----

    def _legend(self, y: float) -> float:
        x = _MARGIN
        for kind, text in _LEGEND:
            self._canvas.line(Spot(x, y - 4), Spot(x + 26, y - 4), kind)
            self._canvas.text(Spot(x + 32, y), text, "dim")
            x += 32 + len(text) * CHARACTER + 20
        self._width = max(self._width, x)
        return y + 2 * _ROW

    def _texts(self, y: float) -> float:
        messages = [self._diagram.messages[each] for each in self._diagram.flying]
        y = self._line(y, f"In flight: {counted(len(messages), 'message') if messages else 'nothing'}", "strong")
        cells = [(str(number), *flying_cells(self._opened, each)) for number, each in enumerate(messages, 1)]
        y = self._table(y, cells) + 6
        y = self._line(y, "Last call of each process", "strong")
        rows = position_rows(self._opened, self._diagram.cut, self._diagram.last)
        # Without the number of all events, which is beside the lane.
        y = self._table(y, [(cells[0], cells[1], clipped(cells[4])) for cells in rows])
        for sentence in diagram_remarks(self._opened, self._diagram):
            y = self._line(y + 6, sentence, "dim")
        return y + 2

    def _line(self, y: float, text: str, kind: str) -> float:
        self._canvas.text(Spot(_MARGIN, y), text, kind)
        self._width = max(self._width, 2 * _MARGIN + len(text) * CHARACTER)
        return y + _ROW

    def _table(self, y: float, rows: Sequence[Sequence[str]]) -> float:
        if not rows:
            return y
        widths = [(max(map(len, column)) + 2) * CHARACTER for column in zip(*rows, strict=True)]
        places = list(accumulate(widths, initial=_MARGIN))
        for row in rows:
            for x, cell in zip(places, row, strict=False):
                self._canvas.text(Spot(x, y), cell)
            y += _ROW
        self._width = max(self._width, places[-1] + _MARGIN)
        return y
