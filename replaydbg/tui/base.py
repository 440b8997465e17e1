"""What all acts of the terminal UI stand on: what is known of the run, and how the session's thread is asked."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, overload

from textual.screen import Screen
from textual.widget import Widget

from replaydbg.tui.owner import Owner, Work
from replaydbg.tui.scene import Overview, Reply, Said, Scene, SourceText
from replaydbg.tui.typed import TypedApp

Part = TypeVar("Part", bound=Widget)


class Base(TypedApp):
    """The part of the app that acts need."""

    scene: Scene | None
    """Where the session stands; None before it is open."""
    overview: Overview | None
    texts: dict[str, SourceText]
    """The source files that are known, by name."""
    panel_shown: int
    """Which one a narrow terminal shows."""
    is_source_hidden: bool
    """Whether it stands in place of the source where there is room for one."""
    owner: Owner
    keys: Mapping[str, str]
    """The keys of each act."""

    @property
    def main(self) -> Screen[object]:
        """The screen with the panels, whatever lies over it."""
        return self.screen_stack[0]

    @property
    def is_shown(self) -> bool:
        """Whether the panels are there: what comes from the session's thread may be late."""
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
        self, work: Work, *, slot: str = "", then: Callable[[Reply], None] | None = None, is_typed: bool = False
    ) -> int:
        """Have something done with the session; what it answers is shown, and `then` is called with it."""

    @abstractmethod
    def order(self, line: str, *, is_typed: bool = False) -> None:
        """Do a line that the prompt would take; `is_typed`: what it says is shown in the console."""

    @abstractmethod
    def say(self, said: Sequence[Said]) -> None:
        """Put lines into the console."""

    @abstractmethod
    def refresh_events(self) -> None:
        """Read the events around here, if they are seen."""

    @abstractmethod
    def show_tab(self, name: str) -> None:
        """Show one of the sixth panel's tabs."""

    @abstractmethod
    def lay_out(self) -> None:
        """Show what there is room for."""

    @abstractmethod
    def complain(self, text: str) -> None:
        """Say what could not be done, until the next key."""
