"""The query about what the process holds here: descriptors, locks, timers, children."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from replaydbg.commands.resources import resources_here
from replaydbg.commands.view import View
from replaydbg.events.show import printable
from replaydbg.render.resources_text import resources_tables
from replaydbg.render.tables import Table
from replaydbg.tui.view_model import AnswerList, Choice

_MOST_WIDTH = 40
"""Columns of a cell; longer ones move only those behind them in their row."""


def resources(view: View) -> AnswerList:
    """Return the resources here; choosing a descriptor goes to the call that opened it."""
    found = resources_here(view)
    choices: list[Choice] = []
    for table in resources_tables(found, view.session.header.cwd):
        choices.append(Choice(printable(table.title), "bold"))
        events = [each.handle.origin.event for each in found.opened] if table.columns[:1] == ("fd",) else []
        for index, text in enumerate(_lines(table)):
            event = events[index] if index < len(events) else 0
            choices.append(Choice(printable(text), order=f"seek {event}:0" if event else ""))
        choices += [Choice(printable(note), "dim") for note in table.notes]
        choices.append(Choice(""))
    return AnswerList(f"Resources after event {found.event:,}", tuple(choices), "Enter goes to the call that opened it")


def _lines(table: Table) -> Iterator[str]:
    """Yield the rows with their cells in columns."""
    cells = list(zip(*table.rows, strict=True))
    widths = [min(max(map(len, column)), _MOST_WIDTH) for column in cells]
    for row in table.rows:
        padded = [
            cell.rjust(width) if name in table.right else cell.ljust(width)
            for name, cell, width in zip(table.columns, row, widths, strict=True)
        ]
        yield "  ".join(padded).rstrip()


QUESTIONS: dict[str, Callable[..., object]] = {each.__name__: each for each in (resources,)}
"""The queries by name."""
