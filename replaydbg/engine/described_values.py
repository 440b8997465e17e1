"""Values as text, each within limits of its own: a slow or fatal `__repr__` costs its own value only."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from replaydbg.classes import replace
from replaydbg.engine.queries import ListQuery
from replaydbg.engine.query_results import Variable
from replaydbg.errors import AskFailed

ALL_SECONDS = 2.0
"""Seconds for all values of a query at once. Then each gets EACH_SECONDS, as long as IN_ALL_SECONDS last."""
EACH_SECONDS = 0.5
IN_ALL_SECONDS = 6.0


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
        return asked.ask(query, seconds=ALL_SECONDS, idle=idle)
    except AskFailed:
        found = list(asked.ask(replace(query, has_texts=False), idle=idle))
    until = time.monotonic() + IN_ALL_SECONDS
    waiting = [range(len(found))]
    while waiting:
        part = waiting.pop()
        try:
            found[part.start : part.stop] = _texts(asked, query, part, until, idle)
        except AskFailed as error:
            if len(part) > 1 and time.monotonic() < until:
                middle = len(part) // 2
                waiting += [part[middle:], part[:middle]]
            else:
                found[part.start : part.stop] = [_without_text(found[index], error) for index in part]
    return tuple(found)


def _texts(
    asked: QueriedProcess, query: ListQuery, part: range, until: float, idle: Callable[[], None]
) -> tuple[Variable, ...]:
    left = until - time.monotonic()
    if left <= 0:
        raise AskFailed("other values took too long")
    of_part = replace(query, start=part.start, stop=part.stop)
    answer = asked.ask(of_part, seconds=min(left, EACH_SECONDS), idle=idle)
    if len(answer) != len(part):  # the program can answer anything
        raise AskFailed("the answer is about other values")
    return answer


def _without_text(variable: Variable, error: AskFailed) -> Variable:
    return replace(variable, text=f"<{variable.type} without a text: {error.reason}>")
