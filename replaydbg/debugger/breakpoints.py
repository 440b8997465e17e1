"""The breakpoints of a session."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from replaydbg.debugger.session_results import Breakpoint
from replaydbg.engine.protocol import MOST_BREAKS
from replaydbg.errors import UsageError


class Breakpoints:
    """Breakpoints by their numbers, which count from 1 and are never used again."""

    def __init__(self) -> None:
        self._breakpoints: dict[int, Breakpoint] = {}
        self._numbers = 0

    def __iter__(self) -> Iterator[Breakpoint]:
        return iter(tuple(self._breakpoints.values()))

    def __len__(self) -> int:
        return len(self._breakpoints)

    def add(self, point: Breakpoint) -> Breakpoint:
        """Add it under a new number, and return it.

        Raises UsageError for a condition that cannot be read, and if there are too many at lines and functions.
        """
        if point.condition:
            try:
                compile(point.condition, "<condition>", "eval")
            except SyntaxError as error:
                raise UsageError(f"The condition {point.condition!r} is not valid Python: {error.msg}.") from None
        if point.is_of_lines and sum(1 for each in self if each.is_of_lines) == MOST_BREAKS:
            raise UsageError(f"At most {MOST_BREAKS} breakpoints at lines and functions are possible.")
        self._numbers += 1
        point = replace(point, number=self._numbers)
        self._breakpoints[point.number] = point
        return point

    def change(self, number: int, **fields: Any) -> Breakpoint:
        """Change fields of the breakpoint `number`. Raises UsageError if there is none."""
        point = self._breakpoint(number)
        self._breakpoints[number] = replace(point, **fields)
        return self._breakpoints[number]

    def remove(self, number: int) -> Breakpoint:
        """Remove it. Raises UsageError if there is none."""
        point = self._breakpoint(number)
        del self._breakpoints[number]
        return point

    def take_over(self, other: Breakpoints) -> None:
        """Replace all by those of another session, with their numbers."""
        self._breakpoints, self._numbers = dict(other._breakpoints), other._numbers

    def _breakpoint(self, number: int) -> Breakpoint:
        if number not in self._breakpoints:
            raise UsageError(f"No breakpoint {number}.")
        return self._breakpoints[number]

    def remove_if_temporary(self, number: int) -> None:
        """Remove it if it was to stop the session once."""
        point = self._breakpoints.get(number)
        if point is not None and point.temporary:
            self.remove(number)
