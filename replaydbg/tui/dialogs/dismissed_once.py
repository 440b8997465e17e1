"""Screens that can be closed once: Textual closes whatever is on top, even if that is another screen, or the last one.

A screen gets more than one request if several keys or clicks arrive together: each is handled after the one before, but
the first one closed the screen.
"""

from __future__ import annotations

from typing import Any

from textual.await_complete import AwaitComplete
from textual.command import CommandPalette
from textual.widgets import OptionList


class DismissedOnce:
    """Part of a screen that closes only itself. It comes before the screen among the bases.

    It is not a screen: Textual takes the styles of the first base that is one.
    """

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Close it with a result; do nothing if it is not on top."""
        if not self.is_active:  # type: ignore[attr-defined]  # that of the screen, as `dismiss`
            return AwaitComplete()
        closed: AwaitComplete = super().dismiss(result)  # type: ignore[misc]
        return closed


class Palette(DismissedOnce, CommandPalette):
    """The palette of all actions."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Refuse to move by a page in a list that has no lines yet, which Textual takes for granted."""
        has_lines = any(each.scrollable_content_region.height for each in self.query(OptionList))
        return super().check_action(action, parameters) if action != "command_list" or has_lines else False
