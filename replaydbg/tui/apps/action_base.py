"""The common base of the terminal UI's actions: the state of the run, and requests to the session's thread."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, overload

from textual.screen import Screen
from textual.widget import Widget

from replaydbg.tui.apps.typed_app import TypedApp
from replaydbg.tui.view_model import ConsoleLine, Overview, Reply, Scene, SourceText
from replaydbg.tui.worker.session_thread import SessionThread, Work

Part = TypeVar("Part", bound=Widget)


class ActionBase(TypedApp):
    """The part of the app that actions need."""

    scene: Scene | None
    """The session's present state; None before it is open."""
    overview: Overview | None
    texts: dict[str, SourceText]
    """The source files that were loaded, by name."""
    panel_shown: int
    """The number of the panel that a narrow terminal shows."""
    is_source_hidden: bool
    """Whether another panel replaces the source where there is room for only one."""
    owner: SessionThread
    keys: Mapping[str, str]
    """The keys of each action."""

    @property
    def main(self) -> Screen[object]:
        """The screen with the panels, whatever dialog is on top of it."""
        return self.screen_stack[0]

    @property
    def is_shown(self) -> bool:
        """Whether the panels exist: messages from the session's thread may arrive late."""
        return bool(self.screen_stack) and bool(self.main.query("#status"))

    @overload
    def part(self, which: str) -> Widget: ...

    @overload
    def part(self, which: type[Part]) -> Part: ...

    def part(self, which: str | type[Part]) -> Widget | Part:
        """Return a panel, or another part of the main screen."""
        return self.main.query_one(which)

    @abstractmethod
    def ask(
        self,
        work: Work,
        *,
        slot: str = "",
        then: Callable[[Reply], None] | None = None,
        is_typed: bool = False,
        is_move: bool = False,
    ) -> int:
        """Request work from the session's thread; the reply is shown, and `then` is called with it.

        `is_move`: the reply need not show the position if another move waits already.
        """

    @abstractmethod
    def order(self, line: str, *, is_typed: bool = False) -> None:
        """Execute a command of the prompt; `is_typed`: its output is shown in the console."""

    @abstractmethod
    def add_to_console(self, lines: Sequence[ConsoleLine]) -> None:
        """Add lines to the console."""

    @abstractmethod
    def refresh_events(self) -> None:
        """Read the events around this moment, if their panel is visible."""

    @abstractmethod
    def show_tab(self, name: str) -> None:
        """Show one of the sixth panel's tabs."""

    @abstractmethod
    def lay_out(self) -> None:
        """Show the panels that fit."""

    @abstractmethod
    def complain(self, text: str) -> None:
        """Show an error message until the next key."""
