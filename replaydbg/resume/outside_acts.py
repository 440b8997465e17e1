"""The acts of a program outside of its process, each with the file or socket that it changed."""

from __future__ import annotations

from pathlib import PurePath

from replaydbg.classes import dataclass
from replaydbg.events.records import Event
from replaydbg.events.show import show_call
from replaydbg.resources.descriptions import Description
from replaydbg.resources.event_values import argument, integer, number_of
from replaydbg.resources.process_state import ProcessState

_MOVES = frozenset({"write", "writev", "pwrite", "pwritev", "send", "sendto", "sendmsg"})
"""Calls that return how many bytes they have moved."""
_STANDARD = {1: "standard output", 2: "standard error"}


@dataclass(frozen=True, slots=True)
class OutsideAct:
    """Something that the program has done outside after the moment from which it goes live."""

    event: int
    """Its event."""
    call: str
    """The full name of what was called, such as `posix.rename`."""
    text: str
    """The same with its arguments."""
    place: str
    """The line of the call."""
    process: int = 0
    """The number of the process in its group; 0: the recording is of one process."""
    resource: str = ""
    """The path of the file that the call was given, or a noun for another resource; empty: it was given none."""
    size: int = -1
    """How many bytes were moved; -1: none, or it is not known."""
    is_standard: bool = False
    """Whether it wrote to standard output or standard error."""

    @property
    def shown(self) -> str:
        """The act in a line for people."""
        # FILE:LINE in FUNCTION, without the directory and the function.
        place = PurePath(self.place.rpartition(" in ")[0]).name if " in " in self.place else ""
        what = self.text
        if self.resource:
            size = f", {self.size:,} byte{'s' * (self.size != 1)}" if self.size >= 0 else ""
            what = f"{self.resource}: {self.call.rpartition('.')[2]}{size}"
        return f"{what} ({place})" if place else what


def outside_act(event: Event, state: ProcessState) -> OutsideAct:
    """Return the act of an event; `state` is that of the process right before it."""
    number = number_of(argument(event, 0)) if event.arguments else -1
    description = state.numbers.get(number) if number >= 0 else None
    is_standard = number in _STANDARD and (description is None or description.origin.event == 0)
    resource, size = "", -1
    if event.gate.startswith("_sqlite3.file."):
        resource = str(argument(event, 0))
        size = integer(argument(event, 2)) if event.gate.endswith(".write") else -1
    elif is_standard:
        resource = _STANDARD[number]
    elif description is not None:
        resource = _name(description)
    if size < 0 and type(event.outcome) is int and event.gate.rpartition(".")[2] in _MOVES:
        size = event.outcome
    return OutsideAct(event.number, event.gate, show_call(event), str(event.site), 0, resource, size, is_standard)


def _name(description: Description) -> str:
    path = description.path
    return path if isinstance(path, str) and path else f"a {description.kind}"
