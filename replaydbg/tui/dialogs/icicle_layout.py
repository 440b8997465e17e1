"""The places of the boxes of an icicle graph: a level for each step, as wide as what the objects retain."""

from __future__ import annotations

from collections.abc import Iterator

from replaydbg.classes import dataclass
from replaydbg.tui.icicle_model import IcicleBox

LEAST = 2
"""Columns below which a box is not drawn alone, but together with its smaller neighbours."""


@dataclass(frozen=True, slots=True)
class IcicleCell:
    """A box on the screen, or several that are too narrow."""

    first: int
    last: int
    """The column behind it."""
    around: int
    """The index of the cell around it in the level above."""
    boxes: tuple[IcicleBox, ...]
    """One, or those that are too narrow to be drawn alone."""

    @property
    def box(self) -> IcicleBox | None:
        """The box; None: there are several."""
        return self.boxes[0] if len(self.boxes) == 1 else None


Level = tuple[IcicleCell, ...]


def levels(box: IcicleBox, width: int) -> list[Level]:
    """Return the levels of a graph that begins with `box`, in `width` columns; each has a cell at least."""
    found: list[Level] = [(IcicleCell(0, width, 0, (box,)),)]
    while cells := tuple(_below(found[-1])):
        found.append(cells)
    return found


def _below(level: Level) -> Iterator[IcicleCell]:
    for around, cell in enumerate(level):
        box = cell.box
        if box is None or not box.retained:
            continue
        at, done = cell.first, 0
        width = cell.last - cell.first
        for place, inside in enumerate(box.boxes):
            if width * inside.retained < LEAST * box.retained:
                yield from _narrow(box.boxes[place:], at, cell, around)
                break
            done += inside.retained
            last = cell.first + round(width * done / box.retained)
            yield IcicleCell(at, last, around, (inside,))
            at = last


def _narrow(boxes: tuple[IcicleBox, ...], at: int, cell: IcicleCell, around: int) -> Iterator[IcicleCell]:
    """Yield one cell for boxes that are too narrow, if it is wide enough."""
    assert cell.box is not None, cell
    width = round((cell.last - cell.first) * sum(each.retained for each in boxes) / cell.box.retained)
    last = min(at + width, cell.last)
    if last - at >= LEAST:
        yield IcicleCell(at, last, around, boxes)
