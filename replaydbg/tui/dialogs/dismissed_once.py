"""Screens that can be closed once: Textual closes whatever is on top, even if that is another screen, or the last one.

A screen gets more than one request if several keys or clicks arrive together: each is handled after the one before, but
the first one closed the screen.
"""

from __future__ import annotations

from typing import Any

from textual.await_complete import AwaitComplete


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
