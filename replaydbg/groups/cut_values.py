"""Values of an expression in the processes of a group at positions of cuts."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Moment
from replaydbg.debugger.values.values_at_moments import ModuleValue, values_at

NOT_BEGUN = ModuleValue("", "it had not begun")


def count_at(session: Session, position: int) -> int:
    """Return the line at which a process stands at a position of a cut: all that ran before the next event has run.

    If the next event is of the same line, the line has not begun.
    """
    index = session.index
    following = index.starts[position + 1] if position + 1 < len(index.starts) else index.total
    # After the program's own last line the interpreter ends, and modules go.
    return max(1, min(following, index.end + 1, index.total))


def values_at_positions(
    session: Session, positions: Iterable[int], expression: str, *, module: str = "__main__"
) -> dict[int, ModuleValue]:
    """Return the value of an expression at positions of a process: one run passes them all. Raises what it does."""
    wanted = sorted(set(positions))
    counts = {position: count_at(session, position) for position in wanted if position}
    # Modules can be gone after the program's own last line: then the value before it counts.
    more = [session.index.end] if any(count > session.index.end for count in counts.values()) else []
    found = values_at(session, [*counts.values(), *more], expression, module=module) if counts else {}
    values = {each: found[counts[each]] if each else NOT_BEGUN for each in wanted}
    for each in wanted:
        if more and counts.get(each, 0) > session.index.end and values[each].reason:
            values[each] = found[session.index.end]
    return values


MOST_LINES = 3_000
"""Lines between two cuts among which changes are searched."""

STRIDE = 16
"""Lines of which all are looked at only if the value differs between the first and the last one."""


class ChangingLine(NamedTuple):
    """A line after which an expression had another value."""

    process: int
    moment: Moment
    file: str
    line: int
    text: str
    """The line's text; empty: it is not available."""
    before: str
    after: str


def changes_between(
    session: Session, process: int, first: int, last: int, expression: str, *, module: str = "__main__"
) -> list[ChangingLine] | None:
    """Return the lines that changed a value between two positions of a process, in order; None: too many lines ran.

    Changes that are taken back within STRIDE lines can be missing.
    """
    begin, end = count_at(session, first), count_at(session, last)
    if end - begin > MOST_LINES:
        return None
    grid = [*range(begin, end, STRIDE), end]
    values = values_at(session, grid, expression, module=module)
    inner = [count for low, high in pairwise(grid) if values[low] != values[high] for count in range(low + 1, high)]
    if inner:
        values |= values_at(session, inner, expression, module=module)
    changes = []
    for count in range(begin, end):
        if count not in values or count + 1 not in values:
            continue
        before, after = values[count], values[count + 1]
        if before.reason or after.reason or before.text == after.text:
            continue
        frame = session.look_at(count).stack[0]
        text = session.source_line(frame.file, frame.line)
        place = session.index.moment(count), frame.file, frame.line, text
        changes.append(ChangingLine(process, *place, before.text, after.text))
    return changes
