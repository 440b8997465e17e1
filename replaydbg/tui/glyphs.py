"""The signs that the panels draw: in Unicode, or in ASCII for terminals that have nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.scrollbar import ScrollBarRender


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of signs; each is one column wide."""

    here: str
    """The line that is about to run."""
    caller: str
    """A line from which a call has not come back."""
    point: str
    """A breakpoint."""
    point_off: str
    failure: str
    """Where the exception came from, and exceptions on the timeline."""
    snapshot: str
    mark: str
    cursor: str
    """Where we stand on the timeline."""
    bars: str
    """From nothing to most."""
    runs: str
    """A stretch in which a lane ran."""
    waits: str
    opened: str
    closed: str
    arrow: str
    dots: str
    rule: str


UNICODE = Glyphs("▶", "▷", "●", "○", "✗", "◆", "▼", "█", " ▁▂▃▄▅▆▇█", "━", "·", "▾", "▸", "→", "…", "─")
ASCII = Glyphs(">", "-", "B", "b", "X", "#", "@", "|", " .:-=+*%&", "=", ".", "-", "+", "->", "~", "-")


class AsciiBars(ScrollBarRender):
    """Scroll bars without the blocks of Unicode: whole cells alone."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "] * 8
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "] * 8
