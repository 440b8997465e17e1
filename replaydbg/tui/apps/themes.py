"""The two themes of the terminal UI: their colours, each readable on each background on which it is drawn.

Text has a contrast of at least 4.5:1 with its background, and the border of the focused panel at least 3:1, as WCAG 2.2
recommends (1.4.3 and 1.4.11); Textual's own light theme has 1.5:1 for its borders.
"""

from __future__ import annotations

from typing import Any

from textual.app import App
from textual.theme import Theme

from replaydbg.errors import UsageError


def _variables(*, row: str, **text: str) -> dict[str, str]:
    """`row`: behind the present line; `text`: the colours of coloured text, which Textual would otherwise mix."""
    return {f"text-{name}": value for name, value in text.items()} | {"primary-muted": row}


DARK = Theme(
    "replaydbg-dark",
    dark=True,
    primary="#0b6bc2",
    secondary="#004578",
    warning="#ffa62b",
    error="#d8506f",
    success="#4ebf71",
    accent="#ffa62b",
    foreground="#e4e4e4",
    background="#121212",
    surface="#1e1e1e",
    panel="#242f38",
    variables=_variables(
        row="#0c304c",
        accent="#ffc473",
        error="#f08fa0",
        primary="#7cbcf0",
        secondary="#8fb4d4",
        success="#8ad4a1",
        warning="#ffc473",
    ),
)
LIGHT = Theme(
    "replaydbg-light",
    dark=False,
    primary="#0a5aa8",
    secondary="#2f5878",
    warning="#b35c00",
    error="#b3193f",
    success="#0d6630",
    accent="#a85400",
    foreground="#1b1f24",
    background="#fafafa",
    surface="#f0f1f3",
    panel="#e1e5ea",
    variables=_variables(
        row="#dbe8f5",
        accent="#8a4600",
        error="#a8143c",
        primary="#0a4a8a",
        secondary="#2f5878",
        success="#0d6630",
        warning="#8a4600",
    ),
)
_NAMES = {"dark": DARK.name, "light": LIGHT.name}


def use_theme(app: App[Any], name: str) -> None:
    """Draw `app` in a theme: `dark`, `light`, or one of Textual's. Raises UsageError for an unknown one."""
    for each in (DARK, LIGHT):
        app.register_theme(each)
    wanted = _NAMES.get(name, name)
    if wanted not in app.available_themes:
        known = sorted(set(app.available_themes) - set(_NAMES.values()))
        raise UsageError(f"No such theme: {name!r}. Available: dark, light, {', '.join(known)}.")
    app.theme = wanted
