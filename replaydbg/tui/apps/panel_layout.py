"""Which panels fit into the terminal, and which of them a small terminal shows."""

from __future__ import annotations

from textual.content import Content
from textual.geometry import Size
from textual.screen import Screen

from replaydbg.tui.panels.timeline_panel import TimelinePanel
from replaydbg.tui.widgets.plain_text import PlainText

NARROW = 100
"""Width in columns below which only the source, one other panel, and the timeline are shown."""

LOW = 30

TINY = 16
"""Height in lines below which only one panel and two lines of the timeline are shown."""

_TITLES = {2: "Stack", 3: "Locals", 4: "Heap", 6: "Output"}


def lay_out(screen: Screen[object], terminal: Size, *, panel_shown: int, is_source_hidden: bool) -> None:
    """Show the panels that fit.

    `panel_shown` is the panel beside the source, or in its place where there is room for only one and the source is
    hidden.
    """
    width, height = terminal
    is_tiny = height < TINY
    # In a tiny terminal, too, the source takes turns with the other panels.
    is_narrow = width < NARROW or is_tiny
    screen.set_class(height < LOW, "-low")
    screen.set_class(is_tiny, "-tiny")
    screen.set_class(is_narrow, "-narrow")
    screen.set_class(is_tiny and is_source_hidden, "-alone")
    for number, name in ((2, "stack"), (3, "values"), (4, "heap"), (6, "lower")):
        screen.query_one(f"#{name}").set_class(is_narrow and number == panel_shown, "-chosen")
    screen.query_one("#right").set_class(is_narrow and panel_shown == 6, "-none")
    screen.query_one("#body").set_class(panel_shown == 6, "-lower")
    screen.query_one("#tabs", PlainText).set_text(
        _tabs({1: "Source", **_TITLES}, panel_shown if is_source_hidden else 1)
        if is_tiny
        else _tabs(_TITLES, panel_shown)
    )
    timeline = screen.query_one(TimelinePanel)
    timeline.styles.height = 2 if is_tiny else min(2 + timeline.rows_wanted(), max(height // 4 + 1, 5))


def _tabs(titles: dict[int, str], shown: int) -> Content:
    tabs = (
        f"[b reverse] {number} {title} [/]" if number == shown else f"[@click=app.panel({number})] {number} {title} [/]"
        for number, title in titles.items()
    )
    return Content.from_markup("".join(tabs))
