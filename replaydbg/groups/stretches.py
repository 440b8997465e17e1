"""How the total of a value over a whole group changes from cut to cut, such as the number of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from replaydbg.errors import UsageError
from replaydbg.groups.invariants import CutValue, InvariantSearch

MOST_CUTS = 20_000
"""Cuts of a chain that are evaluated: one run of each process passes all of them."""


class Stretch(NamedTuple):
    """Cuts of a chain that follow each other and have the same total."""

    total: Any
    first: int
    last: int
    """Places in the chain."""


def stretches(search: InvariantSearch) -> tuple[list[Stretch], list[CutValue]]:
    """Return the stretches of equal totals, and the cuts that could not be evaluated: evaluates all.

    Raises UsageError if there are too many, or if values are not numbers.
    """
    count = len(search.chain)
    if count > MOST_CUTS:
        raise UsageError(f"There are {count:,} cuts, more than {MOST_CUTS:,}. Use `replaydbg bisect cuts`.")
    if not search.participants:
        reasons = sorted(set(search.without_value().values()))
        raise UsageError(f"--token has no value in any process at the end: {reasons[0]}.")
    values = search.evaluate(range(count))
    found: list[Stretch] = []
    for place, value in enumerate(values):
        if value.reason:
            continue
        if value.total is None:
            raise UsageError(f"--token must be a number in every process (got {_odd(value)!r}).")
        if found and found[-1].total == value.total:
            found[-1] = found[-1]._replace(last=place)
        else:
            found.append(Stretch(value.total, place, place))
    return found, [each for each in values if each.reason]


def _odd(value: CutValue) -> object:
    every: Sequence[object] = (*value.locals.values(), *value.flight)
    return next(each for each in every if not isinstance(each, int | float | complex))
