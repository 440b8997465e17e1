"""Commands on messages between processes that were recorded together."""

from __future__ import annotations

from replaydbg.commands.motion import number_of
from replaydbg.commands.view import View
from replaydbg.commands.vocabulary import PromptCommand
from replaydbg.errors import UsageError
from replaydbg.groups.messages import messages_of
from replaydbg.groups.opened_group import OpenedGroup
from replaydbg.log.group import group_directory, process_number
from replaydbg.render.channels_text import message_lines, message_remarks


def _sender(view: View, rest: str) -> None:
    _show(view, rest, is_receive=True)


def _receiver(view: View, rest: str) -> None:
    _show(view, rest, is_receive=False)


def _show(view: View, rest: str, *, is_receive: bool) -> None:
    path = view.session.path
    directory = group_directory(path)
    if directory is None:
        raise UsageError("This is a recording of one process. `record --children=python` records several.")
    event = number_of(rest, default=view.here.moment.event)
    opened = OpenedGroup(directory)
    messages = messages_of(opened, process_number(path), event, is_receive=is_receive, is_at_prompt=True)
    for line in message_lines(opened, messages):
        view.screen.line(line)
    for remark in message_remarks(messages):
        view.screen.line(remark, "dim")
    for number, problem in opened.problems.items():
        view.screen.line(f"process {number}: {problem}", "dim")


COMMANDS = (
    PromptCommand(
        ("sender",), "[EVENT]", "show who sent what an event received (default: this event)", _sender, completes=""
    ),
    PromptCommand(
        ("receiver",),
        "[EVENT]",
        "show who received what an event sent (default: this event)",
        _receiver,
        completes="",
    ),
)
