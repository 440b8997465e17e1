"""The words of a space-time diagram: what its messages are, and what is not drawn."""

from __future__ import annotations

from collections.abc import Iterator

from replaydbg.events.show import printable
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.groups.space_time import DrawnMessage, SpaceTimeDiagram
from replaydbg.render.channels_text import end_line
from replaydbg.render.groups.invariants_text import counted

MOST_TEXT = 100
"""Characters of a text from a recording that are shown: a line of source, or a command line."""


def clipped(text: str, most: int = MOST_TEXT) -> str:
    """Return a text of printable characters, cut if it is long."""
    shown = printable(text[: most + 1])
    return shown if len(shown) <= most else shown[: most - 3] + "..."


def length_text(message: DrawnMessage) -> str:
    """Return the length of a message, such as `8 bytes (rest)`."""
    return counted(message.length, "byte") + ("" if message.is_whole else " (rest)")


def message_text(message: DrawnMessage) -> str:
    """Return what a message is, such as `8 bytes, pipe`; of a start, how the process was started."""
    if message.is_start:
        return message.kind
    doubt = f", {message.certainty}" if message.certainty != "certain" else ""
    return f"{length_text(message)}, {message.kind}{doubt}"


def flying_cells(opened: OpenedGroup, message: DrawnMessage) -> tuple[str, str, str]:
    """Return what a message in flight is, where it was sent, and where it was received later."""
    receive = clipped(end_line(opened, message.target)) if message.target is not None else "nobody"
    return message_text(message), clipped(end_line(opened, message.source)), receive


def diagram_remarks(opened: OpenedGroup, diagram: SpaceTimeDiagram) -> Iterator[str]:
    """Yield sentences about what is not drawn, or not certain."""
    if diagram.cut.doubts:
        yield f"It is not known whether this cut is consistent: {'; '.join(map(clipped, diagram.cut.doubts[:3]))}."
    if diagram.earlier or diagram.later:
        earlier, later = (counted(each, "event") for each in (diagram.earlier, diagram.later))
        yield f"Only the events near the cut are drawn: {earlier} earlier and {later} later are left out."
    if diagram.undrawn:
        yield f"{counted(diagram.undrawn, 'message')} in flight that were sent earlier are not drawn."
    if diagram.contradictions:
        yield (
            f"{counted(diagram.contradictions, 'message')} not drawn: received before they were sent, "
            "so the recordings contradict each other."
        )
    if not diagram.is_complete:
        yield "The group has too many messages: those of some channels are not drawn."
    for process in sorted(opened.problems):
        yield f"Process {process} is not drawn: its recording is missing or damaged."
