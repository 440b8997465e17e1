"""Queries about the processes of a group: which there are, and what they sent to each other."""

from __future__ import annotations

from collections.abc import Callable

from replaydbg.commands.messages import no_other_end
from replaydbg.commands.view import View
from replaydbg.errors import UsageError
from replaydbg.events.show import printable
from replaydbg.groups.message_chart import ChartedMessage, message_chart
from replaydbg.groups.messages import MessageEnd
from replaydbg.groups.other_end import event_here, find_other_ends
from replaydbg.render.channels_text import end_line
from replaydbg.render.processes_text import process_rows
from replaydbg.tui.view_model import AnswerList, ChartAnswer, ChartRow, Choice

MOST_ROWS = 5000
"""Messages that are shown: those around the position."""


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


def messages(view: View) -> ChartAnswer:
    """Return the chart of the group's messages around the position of the selected process."""
    opened, number = view.group.opened, view.process
    chart = message_chart(opened)
    event = event_here(view.session)
    here = max((at for at, each in enumerate(chart.messages) if _is_before(each, number, event)), default=0)
    first = max(min(here - MOST_ROWS // 2, len(chart.messages) - MOST_ROWS), 0)
    shown = chart.messages[first : first + MOST_ROWS]
    columns = {each: at for at, each in enumerate(chart.processes)}
    rows = tuple(_row(each, columns, number) for each in shown)
    is_all = chart.is_complete and len(shown) == len(chart.messages)
    title = f"Messages of {printable(view.group.name)}" + ("" if is_all else f" ({len(shown):,}, around this position)")
    return ChartAnswer(title, chart.processes, number, rows, here - first)


def _is_before(message: ChartedMessage, process: int, event: int) -> bool:
    """Whether one end of a message is in a process, up to an event."""
    return any(each.process == process and 0 < each.event <= event for each in (message.source, message.target))


def _row(message: ChartedMessage, columns: dict[int, int], process: int) -> ChartRow:
    source, target = message.source, message.target
    if message.is_start:
        order = f"proc {target.process}"
        return ChartRow(columns[source.process], columns[target.process], _end(source), "", message.kind, order=order)
    doubt = f", {message.certainty}" if message.certainty != "certain" else ""
    # From a process that takes part, to the other end; otherwise to where it was sent.
    end = target if source.process == process else source
    text = f"{message.length:,} {'byte' if message.length == 1 else 'bytes'}, {message.kind}{doubt}"
    return ChartRow(columns[source.process], columns[target.process], _end(source), _end(target), text, end=end)


def _end(end: MessageEnd) -> str:
    return f"{end.process}@{end.event or end.begun + 1}"


QUESTIONS: dict[str, Callable[..., object]] = {each.__name__: each for each in (processes, messages)}
"""The queries by name."""
