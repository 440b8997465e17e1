"""Commands on messages between processes that were recorded together."""

from __future__ import annotations

from collections.abc import Sequence

from replaydbg.commands.motion import number_of
from replaydbg.commands.view import View
from replaydbg.commands.vocabulary import PromptCommand
from replaydbg.errors import UsageError
from replaydbg.groups.messages import Message, MessageEnd, messages_of
from replaydbg.groups.other_end import OtherEnds, event_here, find_other_ends, go_to_end
from replaydbg.render.channels_text import end_line, message_lines, message_remarks


def _sender(view: View, rest: str) -> None:
    _show(view, rest, is_receive=True)


def _receiver(view: View, rest: str) -> None:
    _show(view, rest, is_receive=False)


def _show(view: View, rest: str, *, is_receive: bool) -> None:
    opened = view.group.opened
    event = number_of(rest, default=event_here(view.session))
    messages = messages_of(opened, view.process, event, is_receive=is_receive, is_at_prompt=True)
    for line in message_lines(opened, messages):
        view.screen.line(line)
    _print_remarks(view, messages)


def _print_remarks(view: View, messages: Sequence[Message]) -> None:
    for remark in message_remarks(messages):
        view.screen.line(remark, "dim")
    for number, problem in view.group.opened.problems.items():
        view.screen.line(f"process {number}: {problem}", "dim")


def _jump_to_sender(view: View, rest: str) -> None:
    _jump(view, rest, "jump-to-sender", is_receive=True)


def _jump_to_receiver(view: View, rest: str) -> None:
    _jump(view, rest, "jump-to-receiver", is_receive=False)


def _jump(view: View, rest: str, command: str, *, is_receive: bool) -> None:
    event, choice = _event_and_choice(rest, command)
    found = find_other_ends(view.group, view.session, event, is_receive=is_receive)
    if not found.ends:
        _print_remarks(view, ())
        raise UsageError(no_other_end(found, is_receive=is_receive))
    if choice > len(found.ends):
        raise UsageError(f"N must be at most {len(found.ends)} (got {choice}).")
    if len(found.ends) > 1 and not choice:
        raise _several(view, found, command, is_receive=is_receive)
    _go(view, found, found.ends[max(choice, 1) - 1], is_receive=is_receive)


def _several(view: View, found: OtherEnds, command: str, *, is_receive: bool) -> UsageError:
    """List the ends to choose from; return the error that asks for one."""
    for number, end in enumerate(found.ends, 1):
        view.screen.line(f"{number}  {end_line(view.group.opened, end)}")
    _print_remarks(view, found.messages)
    several = f"There are {len(found.ends)} {'sends' if is_receive else 'receives'}."
    if len(found.events) == 1:
        return UsageError(f"{several} Choose one: `{command} {found.events[0]} N`.")
    events = ", ".join(map(str, found.events))
    return UsageError(f"{several} Choose an event: `{command} EVENT` with one of {events}.")


def _go(view: View, found: OtherEnds, end: MessageEnd, *, is_receive: bool) -> None:
    did, by = ("received", "sent by") if is_receive else ("sent", "received by")
    events = ", ".join(f"{found.process}@{each}" for each in found.events)
    view.screen.line(f"What {events} {did} was {by} {end_line(view.group.opened, end)}")
    for remark in message_remarks(found.messages):
        view.screen.line(remark, "dim")
    if not end.event:
        view.screen.line("That call had not ended when the recording ended: this is the end of the recording.", "dim")
    view.keep()
    is_new = view.select_process(end.process)
    if is_new and view.session.limitations.text:
        view.screen.line(view.session.limitations.text)
    go_to_end(view.session, end)
    view.arrive()


def _event_and_choice(rest: str, command: str) -> tuple[int | None, int]:
    """Return the event and the number of one of its ends; None and 0 if they are not given. Raises UsageError."""
    words = rest.split()
    if len(words) > 2:
        raise UsageError(f"usage: {command} [EVENT [N]]")
    event = number_of(words[0]) if words else None
    return event, number_of(words[1]) if len(words) == 2 else 0


def no_other_end(found: OtherEnds, *, is_receive: bool) -> str:
    """Return why what events received, or sent, has no other end."""
    remarks = list(message_remarks(found.messages))
    return " ".join(remarks) or f"Nothing was {'received' if is_receive else 'sent'}."


COMMANDS = (
    PromptCommand(
        ("sender",), "[EVENT]", "show who sent what EVENT received (default: the last event)", _sender, completes=""
    ),
    PromptCommand(
        ("receiver",),
        "[EVENT]",
        "show who received what EVENT sent (default: the last event)",
        _receiver,
        completes="",
    ),
    PromptCommand(
        ("jump-to-sender",),
        "[EVENT [N]]",
        "go to the line that sent what EVENT received, in the sending process",
        _jump_to_sender,
        completes="",
    ),
    PromptCommand(
        ("jump-to-receiver",),
        "[EVENT [N]]",
        "go to the line that received what EVENT sent, in the receiving process",
        _jump_to_receiver,
        completes="",
    ),
)
