"""The stretches of a run in which a predicate holds."""

from __future__ import annotations

from collections.abc import Iterator

from replaydbg.classes import dataclass
from replaydbg.debugger.bisection.bisect_results import VerdictChange
from replaydbg.debugger.bisection.run_bisection import Bisection


@dataclass(frozen=True, slots=True)
class TrueStretch:
    """A part of a run in which a predicate holds at every line."""

    begin: VerdictChange | None
    """The line after which it holds; None: it holds where the search begins."""
    end: VerdictChange | None
    """The line after which it does not hold any more; None: it still holds where the search ends."""


def true_stretches(search: Bisection, most: int) -> Iterator[TrueStretch]:
    """Yield the stretches in which the predicate of `search` holds, in order, at most about `most` of them.

    Raises UsageError if evaluating the predicate changes the program, Cancelled and EngineLost.
    """
    begin: VerdictChange | None = None
    is_open = search.begins_bad
    for change in search.verdict_changes(2 * most + 1):
        if change.is_bad and not is_open:  # of what was printed, each match is a change
            begin, is_open = change, True
        elif not change.is_bad and is_open:
            yield TrueStretch(begin, change)
            is_open = False
    if is_open:
        yield TrueStretch(begin, None)
