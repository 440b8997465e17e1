"""The breakpoints of a session."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from replaydbg.debugger.index import Index
from replaydbg.debugger.values import Breakpoint
from replaydbg.engine.messages import MOST_BREAKS
from replaydbg.errors import UsageError


class Breakpoints:
    """What a session has for breakpoints: they are numbered from 1, and a number does not come again."""

    index: Index

    def __init__(self) -> None:
        super().__init__()
        self._breakpoints: dict[int, Breakpoint] = {}
        self._numbers = 0

    @property
    def breakpoints(self) -> tuple[Breakpoint, ...]:
        """All of them."""
        return tuple(self._breakpoints.values())

    def add_breakpoint(self, point: Breakpoint) -> Breakpoint:
        """Add it under a new number, and return it.

        Raises UsageError for a condition that cannot be read, and if there are too many at lines and functions.
        """
        if point.condition:
            try:
                compile(point.condition, "<condition>", "eval")
            except SyntaxError as error:
                raise UsageError(f"The condition {point.condition!r} cannot be read: {error.msg}.") from None
        if point.is_of_lines and sum(1 for each in self.breakpoints if each.is_of_lines) == MOST_BREAKS:
            raise UsageError(
                f"There are {MOST_BREAKS} breakpoints at lines and functions, and no room for another one."
            )
        self._numbers += 1
        point = replace(point, number=self._numbers)
        self._breakpoints[point.number] = point
        return point

    def change_breakpoint(self, number: int, **fields: Any) -> Breakpoint:
        """Change fields of the breakpoint `number`. Raises UsageError if there is none."""
        point = self._breakpoint(number)
        self._breakpoints[number] = replace(point, **fields)
        return self._breakpoints[number]

    def remove_breakpoint(self, number: int) -> Breakpoint:
        """Remove it. Raises UsageError if there is none."""
        point = self._breakpoint(number)
        del self._breakpoints[number]
        return point

    def _take_breakpoints(self, other: Breakpoints) -> None:
        self._breakpoints, self._numbers = dict(other._breakpoints), other._numbers

    def _breakpoint(self, number: int) -> Breakpoint:
        if number not in self._breakpoints:
            raise UsageError(f"There is no breakpoint {number}.")
        return self._breakpoints[number]

    def source_file(self, name: str) -> str:
        """Return the one file of the program that `name` means: a path, or its end. Raises UsageError."""
        files = {each.file for each in self.index.hits}
        if name in files:
            return name
        wanted = "/" + name.lstrip("./")
        found = sorted(each for each in files if ("/" + each).endswith(wanted))
        if len(found) != 1:
            raise UsageError(
                f"No line of a file {name!r} ran." if not found else f"{name!r} may be {' or '.join(found[:5])}."
            )
        return found[0]

    def remove_if_temporary(self, number: int) -> None:
        """Remove it if it was to stop the session once."""
        point = self._breakpoints.get(number)
        if point is not None and point.temporary:
            self.remove_breakpoint(number)
