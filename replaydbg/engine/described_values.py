"""Values as text, each within limits of its own: a slow or fatal `__repr__` costs its own value only."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from replaydbg.engine.queries import MOST_LISTED, ListQuery
from replaydbg.engine.query_results import Variable
from replaydbg.errors import AskFailed

ALL_SECONDS = 3.0
"""Seconds for all values of a query at once."""
EACH_SECONDS = 0.5
"""Seconds for a value, or for some of them together, beside what it takes to get at them."""
IN_ALL_SECONDS = 6.0
"""Seconds for the search for those that take too long."""


class QueriedProcess(Protocol):
    """A process whose copies answer queries."""

    def ask(
        self, query: ListQuery, *, seconds: float = ..., idle: Callable[[], None] | None = None
    ) -> tuple[Variable, ...]:
        """Return the values. Raises AskFailed if it takes longer, or ends the copy."""


def described_values(asked: QueriedProcess, query: ListQuery, idle: Callable[[], None]) -> tuple[Variable, ...]:
    """Return the values that a query is about, with their texts.

    In place of the text of one that takes too long, or whose `__repr__` ends the process, there is the reason. `idle`
    is called now and then, and may raise to cancel. Raises AskFailed if not even their names are found in time.
    """
    try:
        return asked.ask(query, seconds=ALL_SECONDS, idle=idle)[:MOST_LISTED]
    except AskFailed:
        began = time.monotonic()
        found = list(asked.ask(replace(query, has_texts=False), idle=idle)[:MOST_LISTED])
    # The expression that a query is about is evaluated each time.
    limit = round(EACH_SECONDS + (time.monotonic() - began), 1)
    until = time.monotonic() + IN_ALL_SECONDS
    waiting = _halves(range(len(found)))
    while waiting:
        part = waiting.pop()
        try:
            found[part.start : part.stop] = _texts(
                asked, query, part, min(limit, round(until - time.monotonic(), 1)), idle
            )
        except AskFailed as error:
            if len(part) > 1 and time.monotonic() < until:
                waiting += _halves(part)
            else:
                found[part.start : part.stop] = [_without_text(found[index], error) for index in part]
    return tuple(found)


def _halves(part: range) -> list[range]:
    """Return the halves that are not empty, the first one last."""
    middle = len(part) // 2
    return [each for each in (part[middle:], part[:middle]) if each]


def _texts(
    asked: QueriedProcess, query: ListQuery, part: range, seconds: float, idle: Callable[[], None]
) -> tuple[Variable, ...]:
    if seconds <= 0:
        raise AskFailed("the time for all values was used up")
    answer = asked.ask(replace(query, start=part.start, stop=part.stop), seconds=seconds, idle=idle)
    if len(answer) != len(part):  # the program can answer anything
        raise AskFailed("the program gave an invalid answer")
    return answer


def _without_text(variable: Variable, error: AskFailed) -> Variable:
    text = f"<{variable.type} without a text: {error.reason}>"
    return Variable(variable.name, variable.type, text, variable.parts, variable.digest, is_shown=False)
