"""The status line: the most important keys, notices, and progress."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text
from textual import events

from replaydbg.tui.keys import ACTS
from replaydbg.tui.widgets.plain_text import PlainText


class StatusLine(PlainText):
    """One line: the progress of a long operation, else the last notice, else the most important keys."""

    def __init__(self, keys: Mapping[str, str], hint: str = "") -> None:
        """Show `keys`, those of each action; `hint` is shown in their place."""
        super().__init__(id="status")
        self._keys, self._hint = keys, hint
        self._notice = ""
        self._is_error = False
        self._progress = ""
        self._drawn: tuple[str, str, bool] | None = None
        """What was drawn last."""

    def hint(self) -> Text:
        """The most important keys."""
        text = Text(self._hint and f" {self._hint}", no_wrap=True)
        for each in ACTS if not self._hint else ():
            keys = self._keys[each.id].split()
            if each.hint and keys:
                text.append(f" {keys[0]} ", "bold")
                text.append(each.hint)
        if not self._hint:
            text.append(" ^p ", "bold")
            text.append("palette")
        return text

    async def on_click(self, event: events.Click) -> None:
        """Run the action of the clicked key; a click confirms that a notice was read."""
        if self.shown or self._hint:
            self.notice("")
            return
        at = 0
        for each in ACTS:
            keys = self._keys[each.id].split()
            if each.hint and keys:
                width = len(f" {keys[0]} {each.hint}")
                if at <= event.x < at + width:
                    await self.app.run_action(each.action)
                    return
                at += width
        if event.x >= at:
            await self.app.run_action("command_palette")

    def notice(self, text: str, *, is_error: bool = False) -> None:
        """Show a notice until the next key."""
        self._notice, self._is_error = text.split("\n")[0], is_error
        self._draw()

    def progress(self, what: str, done: float, seconds: float) -> None:
        """Show the progress of a long operation; an empty `what` ends it."""
        share = f" {done:.0%}" if done else ""
        self._progress = f"{what}{share}, {seconds:.1f} s (Esc cancels)" if what else ""
        self._draw()

    def on_mount(self) -> None:
        """Show the keys."""
        self._draw()

    @property
    def shown(self) -> str:
        """The text shown at present."""
        return self._progress or self._notice

    def _draw(self) -> None:
        wanted = (self._progress, self._notice, self._is_error)
        if wanted == self._drawn:
            return  # each key clears the notice
        self._drawn = wanted
        self.set_class(bool(self._progress), "-busy")
        self.set_class(self._is_error and bool(self._notice) and not self._progress, "-error")
        # It is one line high, whatever its content: a new layout of the screen takes longer than drawing it.
        self.set_text(Text(self.shown, no_wrap=True) if self.shown else self.hint(), layout=False)
