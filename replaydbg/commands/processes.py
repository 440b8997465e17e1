"""Commands on the processes that were recorded together."""

from __future__ import annotations

from replaydbg.commands.view import View
from replaydbg.commands.vocabulary import PromptCommand
from replaydbg.errors import UsageError
from replaydbg.render.groups.processes_text import process_heading, process_rows

USAGE = "usage: proc [N [MOMENT]]"


def _proc(view: View, rest: str) -> None:
    word, _, moment = rest.strip().partition(" ")
    if not word:
        show_processes(view, "")
        return
    if not (word.isascii() and word.isdecimal()) or len(word) > 7:
        raise UsageError(f"{USAGE} (got {word!r})")
    go_to_process(view, int(word), moment.strip())


def go_to_process(view: View, number: int, moment: str = "") -> None:
    """Select a process and show where it is, or go to a moment in it."""
    view.keep()
    is_new = view.select_process(number)
    view.screen.line(process_heading(view.group, number), "bold")
    if is_new and view.session.limitations.text:
        view.screen.line(view.session.limitations.text)
    if moment:
        view.session.seek(moment)
    if moment or is_new:
        view.arrive()
        return
    view.keep()
    view.show_here()
    view.show_displays()


def show_processes(view: View, rest: str) -> None:
    """Print the processes of the group, each with its position."""
    for number, cells in process_rows(view.group):
        mark = "->" if number == view.process else "  "
        view.screen.line(f"{mark} {'  '.join(cells)}".rstrip(), "bold" if number == view.process else "")
    more = view.group.group.more
    if more:
        view.screen.line(f"{more:,} more processes were started, and are not recorded.", "dim")


COMMANDS = (
    PromptCommand(
        ("proc", "inferior"),
        "[N [MOMENT]]",
        "select process N where it was left, or go to a moment in it (default: list the processes)",
        _proc,
        completes="processes",
    ),
)
