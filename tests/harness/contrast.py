"""How readable what the terminal UI has drawn is: the contrast of its text, as WCAG 2.2 defines it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.style import Style
from textual.app import App
from textual.geometry import Region

from replaydbg.tui.dialogs.dialog import Dialog

LEAST = 4.5
"""The least contrast of text (success criterion 1.4.3)."""

LEAST_OF_SIGNS = 3.0
"""The least contrast of borders and bars that one has to see (success criterion 1.4.11)."""

_DECORATION = frozenset("╭╮╰╯─│┃┏┓┗┛━▁▂▃▄▅▆▇█▉▊▋▌▍▎▏· ")


def faint_texts(app: App[int]) -> list[str]:
    """Return what has too little contrast on the screen, with its contrast; of a dialog, not what lies behind it."""
    region = app.screen.query_one("#box").region if isinstance(app.screen, Dialog) else app.screen.region
    found = {}
    for text, style in _pieces(app, region):
        contrast = _contrast(style)
        if contrast < LEAST and set(text) - _DECORATION:
            found[text.strip()] = contrast
    return [f"{text!r}: {contrast:.1f}" for text, contrast in found.items()]


def border_contrast(app: App[int], widget: str) -> float:
    """Return the contrast of the upper left corner of a widget's border."""
    at = app.screen.query_one(widget).region
    ((_, style),) = _pieces(app, Region(at.x, at.y, 1, 1))
    return _contrast(style)


def _pieces(app: App[int], region: Region) -> Iterator[tuple[str, Style]]:
    """Yield each piece of text in a part of the screen, and its style."""
    strips = app.screen._compositor.render_strips()
    for strip in strips[region.y : region.bottom]:
        for text, style, _ in strip.crop(region.x, region.right):
            if style is not None and text.strip():
                yield text, style


def _contrast(style: Style) -> float:
    assert style.color is not None and style.bgcolor is not None, style
    light, dark = sorted(map(_luminance, (style.color.get_truecolor(), style.bgcolor.get_truecolor())), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: tuple[int, int, int]) -> float:
    parts = [each / 255 / 12.92 if each <= 10 else ((each / 255 + 0.055) / 1.055) ** 2.4 for each in colour]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
