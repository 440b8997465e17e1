"""The difference of two runs as trees of calls, as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from replaydbg.debugger.calls.call_tree import CallEntry
from replaydbg.debugger.compare.call_differences import CallDifference
from replaydbg.render.json_data.json_object import JsonObject


def call_difference_facts(
    rows: Sequence[CallDifference], moments: tuple[Callable[[int], str], Callable[[int], str]], *, is_cut: bool
) -> JsonObject:
    """Return the rows; `moments` are the moments at counts of lines of both runs."""
    return {"calls": [_row(each, moments) for each in rows], "is_cut": is_cut}


def _row(row: CallDifference, moments: tuple[Callable[[int], str], Callable[[int], str]]) -> JsonObject:
    code = row.entry.code
    sides = (_side(row.left, moments[0]), _side(row.right, moments[1]))
    return {
        "depth": row.depth,
        "differs": row.differs,
        "thread": row.entry.lane,
        "function": code.function,
        "file": code.file,
        "left": sides[0],
        "right": sides[1],
    }


def _side(entry: CallEntry | None, moment: Callable[[int], str]) -> JsonObject | None:
    if entry is None:
        return None
    return {"calls": entry.count, "line": entry.code.line, "moment": moment(entry.begun)}
