"""Queries about the processes of a group: which there are, and where a message leads to."""

from __future__ import annotations

from collections.abc import Callable

from replaydbg.commands.messages import no_other_end
from replaydbg.commands.view import View
from replaydbg.errors import UsageError
from replaydbg.events.show import printable
from replaydbg.groups.messages import MessageEnd
from replaydbg.groups.other_end import find_other_ends
from replaydbg.render.channels_text import end_line
from replaydbg.render.groups.processes_text import process_rows
from replaydbg.tui.view_model import AnswerList, Choice


def processes(view: View) -> AnswerList:
    """Return the processes of the group, to select one."""
    group = view.group
    recorded = {each.number for each in group.group.processes if each.recording}
    choices: list[Choice] = []
    here = 0
    for number, cells in process_rows(group):
        here = len(choices) if number == view.process else here
        order = f"proc {number}" if number in recorded else ""
        style = "bold" if number == view.process else "" if order else "dim"
        choices.append(Choice(printable("  ".join(cells)), style, order=order))
    return AnswerList(f"Processes of {printable(group.name)}", tuple(choices), "Enter selects", here)


def other_ends(view: View, *, is_receive: bool) -> MessageEnd | AnswerList:
    """Return where what is received, or sent, here was sent, or received; a list if there are several places.

    Raises UsageError if there is none.
    """
    found = find_other_ends(view.group, view.session, None, is_receive=is_receive)
    if not found.ends:
        raise UsageError(no_other_end(found, is_receive=is_receive))
    if len(found.ends) == 1:
        return found.ends[0]
    choices = tuple(Choice(printable(end_line(view.group.opened, each)), end=each) for each in found.ends)
    return AnswerList(f"{len(choices)} {'sends' if is_receive else 'receives'}", choices)


QUESTIONS: dict[str, Callable[..., object]] = {each.__name__: each for each in (processes,)}
"""The queries by name."""
