"""The bottom line: keys, notices, progress; and the input line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.suggester import SuggestFromList
from textual.widgets import Input

from replaydbg.tui.keys import ACTS
from replaydbg.tui.plain import PlainText


class StatusLine(PlainText):
    """One line: the progress of a long operation, else the last notice, else the most important keys."""

    def __init__(self, keys: Mapping[str, str], hint: str = "") -> None:
        """Show `keys`, those of each action; `hint` is shown in their place."""
        super().__init__(id="status")
        self._keys, self._hint = keys, hint
        self._notice = ""
        self._is_error = False
        self._progress = ""

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
        self.set_class(bool(self._progress), "-busy")
        self.set_class(self._is_error and bool(self._notice) and not self._progress, "-error")
        # It is one line high, whatever its content: a new layout of the screen takes longer than drawing it.
        self.set_text(Text(self.shown, no_wrap=True) if self.shown else self.hint(), layout=False)


class InputLine(Input):
    """An input line with a history."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "earlier(-1)", show=False),
        Binding("down", "earlier(1)", show=False),
        Binding("escape", "give_up", show=False),
        # At the end of the line it accepts the suggestion.
        Binding("tab", "cursor_right", show=False),
    ]

    def __init__(self) -> None:
        # Text typed right after the key that opened the line arrives before the focus event: it must not be selected
        # then.
        super().__init__(id="line", compact=True, select_on_focus=False)
        self.history: list[str] = []
        self._at = 0

    def begin(self, value: str, history: list[str]) -> None:
        """Start another question."""
        self.history, self._at = history, len(history)
        self.value = value
        self.select_all()

    def take(self, text: str) -> None:
        """Insert text at the cursor, or in place of the selection."""
        self.replace(text, *self.selection)

    def action_earlier(self, by: int) -> None:
        """Bring back an earlier entry."""
        self._at = max(0, min(self._at + by, len(self.history)))
        self.value = self.history[self._at] if self._at < len(self.history) else ""
        self.cursor_position = len(self.value)

    async def action_submit(self) -> None:
        """Submit the answer, before the next key is processed."""
        self._asker.answer(self.value)

    def action_give_up(self) -> None:
        """Close the line without an answer."""
        self._asker.close()

    @property
    def _asker(self) -> AskLine:
        assert isinstance(self.parent, AskLine), "it has no other place"
        return self.parent


class AskLine(Horizontal):
    """A question with an input line for the answer. It is visible only while a question is open."""

    def __init__(self) -> None:
        super().__init__(id="ask")
        self._then: Callable[[str], None] | None = None
        self._histories: dict[str, list[str]] = {}
        self._label = ""

    def compose(self) -> ComposeResult:
        """Make both."""
        yield PlainText(id="question")
        yield InputLine()

    def ask(self, label: str, then: Callable[[str], None], *, value: str = "", words: Iterable[str] = ()) -> None:
        """Ask for an answer; `then` is called with it, unless the user cancels. `words` are suggested."""
        self._then, self._label = then, label
        self.query_one("#question", PlainText).set_text(f"{label} ")
        line = self.query_one(InputLine)
        history = self._histories.setdefault(label, [])
        line.suggester = SuggestFromList([*reversed(history), *words]) if words else None
        line.begin(value, history)
        self.add_class("-open")
        self.screen.set_focus(line)

    def type(self, text: str) -> None:
        """Insert text into the answer."""
        self.query_one(InputLine).take(text)

    def close(self) -> None:
        """Close the question."""
        self._then = None
        self.remove_class("-open")
        self.screen.set_focus(None)
        self.app.action_focus_back()  # type: ignore[attr-defined]  # the only apps that have it

    @property
    def is_open(self) -> bool:
        """Whether a question is open."""
        return self.has_class("-open")

    def answer(self, text: str) -> None:
        """Submit the answer."""
        then, text = self._then, text.strip()
        history = self._histories[self._label]
        if text and text not in history[-1:]:
            history.append(text)
        self.close()
        if then is not None and text:
            then(text)

    def on_descendant_blur(self, event: events.DescendantBlur) -> None:
        """Close the question when another widget gets the focus."""
        focused = self.screen.focused
        if self.is_open and self._then is not None and focused is not None and not isinstance(focused, InputLine):
            self._then = None
            self.remove_class("-open")
