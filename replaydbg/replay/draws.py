"""The random numbers and readings of the clock that a replayed program took, and whether edited code takes others.

One that takes one more or one less gets, from there on, what was meant for another purpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

_SEED = "_random.Random.seed"
"""The seed of a generator is drawn where its module is imported, in edited code perhaps earlier or later."""

Draw: TypeAlias = tuple[str, str]
"""What was asked for, such as `random()` or `time.time`, and the program's function that did; empty: none of its own
did."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What was taken of one kind, in order."""

    draws: tuple[Draw, ...] = ()
    """The first ones; the core keeps 100,000."""
    total: int = 0
    """How many there were."""


@dataclass(frozen=True, slots=True)
class Draws:
    """What one replay took until the outcome was known."""

    numbers: Taken
    """Random numbers whose seed the program did not choose."""
    clock: Taken
    """Readings of the clock."""


NO_DRAWS = Draws(Taken(), Taken())
"""Of a replay that took none, or was ended before the core could tell."""


def has_own_draws(draws: Draws) -> bool:
    """Whether functions of the program took any, and not libraries by themselves alone."""
    return any(draw[1] for taken in (draws.numbers, draws.clock) for draw in taken.draws)


def numbers_shift(recorded: Draws, now: Draws) -> str:
    """Return in words from where on random numbers went to another purpose than recorded; empty: nowhere.

    To take more after all the recorded ones is no difference: the recorded program ended there.
    """
    return _shift(recorded.numbers, now.numbers, "random number", "takes", "were taken")


def clock_shift(recorded: Draws, now: Draws) -> str:
    """Return the same of readings of the clock; only those that the program's own functions caused are compared."""
    return _shift(_of_functions(recorded.clock), _of_functions(now.clock), "reading of the clock", "makes", "were made")


def _shift(recorded: Taken, now: Taken, what: str, takes: str, were_taken: str) -> str:
    recorded, now = _without_seeds(recorded), _without_seeds(now)
    new_names: dict[str, str] = {}
    for index, (before, after) in enumerate(zip(recorded.draws, now.draws, strict=False)):
        # A function may have another name in other code: the same one each time.
        is_same = before[0] == after[0] and new_names.setdefault(before[1], after[1]) == after[1]
        if not is_same:
            return f"{what} {index + 1} was {_shown(before)} and is {_shown(after)}"
    if now.total < recorded.total:
        some = what.replace("reading", "readings") if "reading" in what else f"{what}s"
        taken = f"{now.total} {what if now.total == 1 else some}"
        return f"it {takes} {taken}, and {recorded.total} {were_taken} in the recorded run"
    return ""


def _without_seeds(taken: Taken) -> Taken:
    own = tuple(draw for draw in taken.draws if draw[0] != _SEED)
    return Taken(own, taken.total - len(taken.draws) + len(own))


def _of_functions(taken: Taken) -> Taken:
    own: Sequence[Draw] = tuple(draw for draw in taken.draws if draw[1])
    return Taken(tuple(own), len(own))


def _shown(draw: Draw) -> str:
    return f"{draw[0]} in {draw[1]}" if draw[1] else draw[0]
