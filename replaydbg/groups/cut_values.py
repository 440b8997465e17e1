"""Values of an expression in the processes of a group at positions of cuts."""

from __future__ import annotations

from collections.abc import Iterable

from replaydbg.debugger import Session
from replaydbg.debugger.values_at_moments import ModuleValue, values_at

NOT_BEGUN = ModuleValue("", "it had not begun")


def count_at(session: Session, position: int) -> int:
    """Return the line at which a process stands at a position of a cut: all that ran before the next event has run.

    If the next event is of the same line, the line has not begun.
    """
    starts = session.index.starts
    return max(1, starts[position + 1] if position + 1 < len(starts) else session.index.total)


def values_at_positions(
    session: Session, positions: Iterable[int], expression: str, *, module: str = "__main__"
) -> dict[int, ModuleValue]:
    """Return the value of an expression at positions of a process: one run passes them all. Raises what it does."""
    wanted = sorted(set(positions))
    counts = {position: count_at(session, position) for position in wanted if position}
    found = values_at(session, list(counts.values()), expression, module=module) if counts else {}
    return {each: found[counts[each]] if each else NOT_BEGUN for each in wanted}
