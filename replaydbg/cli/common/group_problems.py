"""Sentences about recordings of a group that cannot be read."""

from __future__ import annotations

import sys

from replaydbg.events.show import printable
from replaydbg.groups.opened_group import OpenedGroup


def problems_of(opened: OpenedGroup) -> list[str]:
    """Return sentences about recordings of the group that cannot be read."""
    found = [f"process {number}: {problem}" for number, problem in opened.problems.items()]
    if not opened.has_transfers and not found:
        found.append(f"The recordings of {opened.name} contain no sends or receives.")
    return found


def print_problems_of(opened: OpenedGroup) -> None:
    """Print the problems of a group on stderr."""
    for line in problems_of(opened):
        print(f"replaydbg: {printable(line)}", file=sys.stderr)


def print_missing_ends(reason: str) -> None:
    """Print on stderr why cuts do not consider ends of streams; empty: they do."""
    if reason:
        print(f"replaydbg: ends of streams are not considered: {printable(reason)}", file=sys.stderr)
