"""The data of a space-time diagram: the worker creates it, the dialog draws it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replaydbg.classes import dataclass

if TYPE_CHECKING:
    from replaydbg.groups.messages import MessageEnd


@dataclass(frozen=True, slots=True)
class DiagramRow:
    """An event of a space-time diagram."""

    process: int
    position: int
    """The position of the process right after it."""
    label: str
    """Such as `2@898`."""
    text: str
    """A description of the event, if no arrow begins or ends here."""
    is_begin: bool = False
    is_end: bool = False


@dataclass(frozen=True, slots=True)
class DiagramArrowRow:
    """A message, or the start of a process."""

    source: int
    """The index of its first event."""
    target: int | None
    """The index of its last event; None: nobody received it."""
    to: int
    """The process that received it, or could have."""
    text: str
    is_start: bool
    is_in_flight: bool


@dataclass(frozen=True, slots=True)
class DiagramAnswer:
    """A space-time diagram of a group around a cut, and the state of its processes and channels in the cut."""

    title: str
    processes: tuple[int, ...]
    """The numbers of the processes, by column."""
    process: int
    """The one under the cursor."""
    rows: tuple[DiagramRow, ...]
    """The events in the order of time."""
    line: int
    """The number of events in the cut."""
    arrows: tuple[DiagramArrowRow, ...]
    state: tuple[tuple[str, str], ...]
    """Lines about processes and channels, each with its style."""
    is_quiet: bool
    end: MessageEnd | None
    """Where Enter goes: the last call of the process under the cursor; None: it has not begun."""
    order: str
    """The command for Enter, if it goes to no call."""


@dataclass(frozen=True, slots=True)
class CutMove:
    """A key that moves the cut of a space-time diagram."""

    events: int = 0
    """The process under the cursor goes on by so many events, or back."""
    lanes: int = 0
    """The cursor goes to the right by so many processes, or to the left."""
    to: tuple[int, int] | None = None
    """The process and position to go to."""
    switches_quiet: bool = False
    """Whether to begin or end showing only quiet cuts."""
