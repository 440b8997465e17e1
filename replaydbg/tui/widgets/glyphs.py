"""The symbols that the panels draw: in Unicode, or in ASCII for terminals without Unicode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.scrollbar import ScrollBarRender


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of symbols; each is one column wide."""

    here: str
    """The line that is about to run."""
    caller: str
    """A line with a call that has not returned."""
    point: str
    """A breakpoint."""
    point_off: str
    failure: str
    """The origin of the exception, and exceptions on the timeline."""
    snapshot: str
    mark: str
    cursor: str
    """The current position on the timeline."""
    bars: str
    """From empty to full."""
    runs: str
    """A stretch in which a lane ran."""
    waits: str
    opened: str
    closed: str
    arrow: str
    dots: str
    rule: str
    left: str
    """The point of an arrow to the left; that to the right is `here`."""
    pillar: str
    """A vertical line."""
    cross: str
    """A vertical line that a horizontal one crosses."""
    turns: str
    """Corners of an arrow: from left to down, from right to down, from above to right, from above to left."""
    track: str
    """A vertical part of an arrow."""
    heavy_turns: str
    heavy_track: str
    """The same of a message in flight; its horizontal parts are as `runs`."""
    cut: str
    """The line of a cut."""
    cut_lane: str
    """A lane that the line of a cut crosses."""
    crossing: str
    """A message that crosses it."""
    ends: str
    """The beginning and the end of a lane."""


UNICODE = Glyphs(
    "▶",
    "▷",
    "●",
    "○",
    "✗",
    "◆",
    "▼",
    "█",
    " ▁▂▃▄▅▆▇█",
    "━",
    "·",
    "▾",
    "▸",
    "→",
    "…",
    "─",
    "◀",
    "│",
    "┼",
    "╮╭╰╯",
    "┆",
    "┓┏┗┛",
    "┃",
    "═",
    "╪",
    "▼",
    "┬┴",
)
ASCII = Glyphs(
    ">",
    "-",
    "B",
    "b",
    "X",
    "#",
    "@",
    "|",
    " .:-=+*%&",
    "=",
    ".",
    "-",
    "+",
    "->",
    "~",
    "-",
    "<",
    "|",
    "+",
    "....",
    ":",
    "####",
    "#",
    "=",
    "=",
    "v",
    "++",
)


class AsciiBars(ScrollBarRender):
    """Scroll bars without Unicode blocks: whole cells only."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "] * 8
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "] * 8
