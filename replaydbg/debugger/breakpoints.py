"""The breakpoints of a session, and the rules for the hits at which they stop."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from replaydbg.classes import dataclass
from replaydbg.debugger.session_results import Breakpoint, CountedHit
from replaydbg.engine.protocol import MOST_BREAKS
from replaydbg.errors import UsageError


class Breakpoints:
    """Breakpoints by their numbers, which count from 1 and are never used again."""

    def __init__(self) -> None:
        self._breakpoints: dict[int, Breakpoint] = {}
        self._numbers = 0
        self._counted: dict[Breakpoint, tuple[CountedHit, ...]] = {}

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
        _check_rule(point)
        self._numbers += 1
        point = replace(point, number=self._numbers)
        self._breakpoints[point.number] = point
        return point

    def change(self, number: int, **fields: Any) -> Breakpoint:
        """Change fields of the breakpoint `number`. Raises UsageError if there is none."""
        point = replace(self._breakpoint(number), **fields)
        _check_rule(point)
        self._breakpoints[number] = point
        return point

    def counted(self, point: Breakpoint, find: Callable[[], Iterable[CountedHit]]) -> tuple[CountedHit, ...]:
        """Return the hits of the run at which `point` stops by its rule, which `find` finds once."""
        key = replace(point, number=0, ignore=0, enabled=True, temporary=False)
        if key not in self._counted:
            self._counted[key] = tuple(find())
        return self._counted[key]

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


def _check_rule(point: Breakpoint) -> None:
    if point.hits:
        parse_rule(point.hits)
        if point.watch is not None:
            raise UsageError(
                "A rule for hits is possible at lines, functions and exceptions, not at changes of a value."
            )


# ---- rules for hits ----

_TAKES: dict[str, Callable[[int, int], bool]] = {
    "%": lambda hit, number: hit % number == 0,
    "==": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
FORM = r"(%|==|>=|<=|>|<)?\s*(\d+)"
"""The regular expression of a rule; without a sign, it means the hit with that number."""


@dataclass(frozen=True, slots=True)
class HitRule:
    """A sign and a number: `%3` takes every third hit, `==7` the seventh one, `>100` those after a hundred."""

    sign: str
    number: int

    def __str__(self) -> str:
        return f"{self.sign}{self.number}"

    def takes(self, hit: int) -> bool:
        """Whether it takes the hit with that number, from 1 on."""
        return _TAKES[self.sign](hit, self.number)

    def is_past(self, hit: int) -> bool:
        """Whether it takes no later hit than this one."""
        return self.sign in ("==", "<", "<=") and hit >= self.number


def parse_rule(text: str) -> HitRule:
    """Return the rule that a user has typed. Raises UsageError."""
    match = re.fullmatch(rf"\s*{FORM}\s*", text)
    if match is None or not int(match[2]):
        raise UsageError(f"A rule for hits is %N, ==N, >N, >=N, <N or <=N, with N from 1 on (got {text.strip()!r}).")
    return HitRule(match[1] or "==", int(match[2]))
