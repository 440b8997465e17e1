"""Process keys in the order in which they were typed: what one key opens receives the keys right after it.

Textual hands a key to the focused widget, and runs its binding only after the key has bubbled up from there: when
several keys arrive together all would go to that widget, even those after the `:` that opens the input line.
"""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.app import App
from textual.widgets import Input

from replaydbg.tui.dialogs.dialog import Dialog
from replaydbg.tui.dialogs.input_line import TypedInput
from replaydbg.tui.dialogs.palette import PaletteCommand, PaletteDialog


class TypedApp(App[int]):
    """Finishes the action of each key before it processes the next one."""

    async def on_event(self, event: events.Event) -> None:
        """Process keys and pasted text; leave all other events to Textual."""
        is_new = isinstance(event, events.InputEvent | events.Paste) and not event.is_forwarded
        if is_new and not self.screen_stack:
            return  # the app is ending
        if is_new and isinstance(event, events.Key) and await self._takes(event):
            return
        if is_new and isinstance(event, events.Paste) and not isinstance(self.focused, Input):
            self.take_pasted(event.text)
            return
        await super().on_event(event)

    def show_late(self, dialog: Dialog, chosen: Callable[[object], None]) -> None:
        """Open a dialog that was asked for some time ago, in the place of one that was asked for earlier.

        Otherwise the answers to keys that were pressed many times would pile up. Each would have to be closed, and
        Textual draws all of them: slower and slower, until it exceeds the recursion limit.
        """
        while isinstance(self.screen, Dialog) and self.screen.is_late:
            self.screen.dismiss(None)
        self.push_screen(dialog, chosen)

    async def _takes(self, key: events.Key) -> bool:
        """Run the action of a key; False: another handler may know it."""
        self.app_focus = True
        if isinstance(self.screen, Dialog) and self.screen.is_new_to(key):
            return True
        focused = self.focused
        if isinstance(focused, TypedInput):
            if key.is_printable and key.character is not None:
                focused.take(key.character)
                return True
        else:
            self.take_note()
        bound = self.screen.active_bindings.get(key.key)
        if bound is None or not bound.enabled:
            return False
        await self.run_action(bound.binding.action, bound.node)
        return True

    def action_command_palette(self) -> None:
        """Open the palette of all actions, on top of the panels."""
        if self.use_command_palette and len(self.screen_stack) == 1:
            commands = [PaletteCommand(*each[:3]) for each in self.get_system_commands(self.screen)]
            self.push_screen(PaletteDialog(commands), self._run_chosen)

    def _run_chosen(self, chosen: object) -> None:
        if isinstance(chosen, PaletteCommand):
            self.call_later(chosen.run)

    def take_note(self) -> None:
        """Called for a key that is not part of a text."""

    def take_pasted(self, text: str) -> None:
        """Called when text is pasted while no question is open: its letters are not keys."""
