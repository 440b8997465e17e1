"""Keys, in the order in which they were typed: what one of them opens gets those that come right behind it.

Textual hands a key to the widget with the focus, and does what it is bound to when it has come back from there: of keys
that come in one piece all would go to that widget, also those behind the `:` that opens the line for them.
"""

from __future__ import annotations

from textual import events
from textual.app import App
from textual.widgets import Input

from replaydbg.tui.bottom import Line
from replaydbg.tui.dialogs import Dialog


class TypedApp(App[int]):
    """Does what each key means before it looks at the next one."""

    async def on_event(self, event: events.Event) -> None:
        """Take keys and pasted text; all else as it is."""
        is_new = isinstance(event, events.InputEvent | events.Paste) and not event.is_forwarded
        if is_new and isinstance(event, events.Key) and await self._takes(event):
            return
        if is_new and isinstance(event, events.Paste) and not isinstance(self.focused, Input):
            self.take_pasted(event.text)
            return
        await super().on_event(event)

    async def _takes(self, key: events.Key) -> bool:
        """Do what a key means; False: somebody else may know it."""
        self.app_focus = True
        if isinstance(self.screen, Dialog) and self.screen.is_new_to(key):
            return True
        focused = self.focused
        if isinstance(focused, Line):
            if key.is_printable and key.character is not None:
                focused.take(key.character)
                return True
        elif isinstance(focused, Input):
            return False  # of the palette, which goes through what it finds by itself
        else:
            self.take_note()
        bound = self.screen.active_bindings.get(key.key)
        if bound is None or not bound.enabled:
            return False
        await self.run_action(bound.binding.action, bound.node)
        return True

    def take_note(self) -> None:
        """A key was pressed, and none of a text."""

    def take_pasted(self, text: str) -> None:
        """Text was pasted where nothing is asked: its letters are no keys."""
