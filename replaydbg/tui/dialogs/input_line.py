"""The input line: a question with a line for the answer, which has a history and suggestions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.suggester import SuggestFromList
from textual.widgets import Input

from replaydbg.tui.widgets.plain_text import PlainText


class TypedInput(Input):
    """An input line whose keys are processed one after the other, however fast they come: see typed_app.py."""

    def take(self, text: str) -> None:
        """Insert text at the cursor, or in place of the selection."""
        self.replace(text, *self.selection)


class InputLine(TypedInput):
    """An input line with a history."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "earlier(-1)", show=False),
        Binding("down", "earlier(1)", show=False),
        Binding("escape", "give_up", show=False),
        Binding("tab", "complete", show=False),
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

    def action_earlier(self, by: int) -> None:
        """Bring back an earlier entry."""
        self._at = max(0, min(self._at + by, len(self.history)))
        self.value = self.history[self._at] if self._at < len(self.history) else ""
        self.cursor_position = len(self.value)

    def action_complete(self) -> None:
        """Accept the suggestion; without one, ask what completes the line."""
        if self._suggestion and self.cursor_position == len(self.value):
            self.action_cursor_right()
        else:
            self._asker.complete(self.value, self.cursor_position)

    def insert_common(self, start: int, common: str) -> None:
        """Put the beginning that all completions have in the place of what is before the cursor."""
        if len(common) > self.cursor_position - start:
            self.replace(common, start, self.cursor_position)

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
        self._completes: Callable[[str, int], None] | None = None
        self._histories: dict[str, list[str]] = {}
        self._label = ""

    def compose(self) -> ComposeResult:
        """Make both."""
        yield PlainText(id="question")
        yield InputLine()

    def ask(
        self,
        label: str,
        then: Callable[[str], None],
        *,
        value: str = "",
        words: Iterable[str] = (),
        completes: Callable[[str, int], None] | None = None,
    ) -> None:
        """Ask for an answer; `then` is called with it, unless the user cancels.

        `words` are suggested. `completes` is called with the line and its cursor when the user wants more.
        """
        self._then, self._label, self._completes = then, label, completes
        self.query_one("#question", PlainText).set_text(f"{label} ")
        line = self.query_one(InputLine)
        history = self._histories.setdefault(label, [])
        line.suggester = SuggestFromList([*reversed(history), *words]) if words else None
        line.begin(value, history)
        self.add_class("-open")
        self.screen.set_focus(line)

    def complete(self, line: str, cursor: int) -> None:
        """Ask what completes the line."""
        if self._completes is not None:
            self._completes(line, cursor)

    def is_at(self, line: str, cursor: int) -> bool:
        """Whether the line and its cursor are still the same."""
        typed = self.query_one(InputLine)
        return self.is_open and (typed.value, typed.cursor_position) == (line, cursor)

    def insert_common(self, start: int, common: str) -> None:
        """Insert the beginning that all completions have."""
        self.query_one(InputLine).insert_common(start, common)

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
