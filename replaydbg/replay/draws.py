"""The random numbers and clock readings of a replayed program, and whether edited code takes others.

Code that takes one more or one less gets, from there on, values that were recorded for another purpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from replaydbg.classes import dataclass

_SEED = "_random.Random.seed"
"""A generator's seed is drawn when its module is imported, in edited code perhaps earlier or later."""

Draw: TypeAlias = tuple[str, str]
"""The request, such as `random()` or `time.time`, and the program's function that made it; empty: none of its own."""


@dataclass(frozen=True, slots=True)
class DrawSequence:
    """The requests of one kind, in order."""

    draws: tuple[Draw, ...] = ()
    """The first ones; the core keeps 100,000."""
    total: int = 0
    """The total number."""


@dataclass(frozen=True, slots=True)
class Draws:
    """The requests of one replay until the outcome was known."""

    numbers: DrawSequence
    """Random numbers whose seed the program did not choose."""
    clock: DrawSequence
    """Readings of the clock."""


NO_DRAWS = Draws(DrawSequence(), DrawSequence())
"""For a replay that took none, or was ended before the core could report."""


def has_own_draws(draws: Draws) -> bool:
    """Whether functions of the program took any, and not only libraries by themselves."""
    return any(draw[1] for taken in (draws.numbers, draws.clock) for draw in taken.draws)


def numbers_shift(recorded: Draws, now: Draws) -> str:
    """Return a text for the place from which on random numbers served another purpose than recorded; empty: none.

    Taking more after all the recorded ones is not a difference: the recorded program ended there.
    """
    return _shift(recorded.numbers, now.numbers, "random number", "takes", "were taken")


def clock_shift(recorded: Draws, now: Draws) -> str:
    """Return the same for readings of the clock; only those that the program's own functions caused are compared."""
    return _shift(_of_functions(recorded.clock), _of_functions(now.clock), "reading of the clock", "makes", "were made")


def _shift(recorded: DrawSequence, now: DrawSequence, what: str, takes: str, were_taken: str) -> str:
    recorded, now = _without_seeds(recorded), _without_seeds(now)
    new_names: dict[str, str] = {}
    for index, (before, after) in enumerate(zip(recorded.draws, now.draws, strict=False)):
        # A function may have another name in edited code, but always the same one.
        is_same = before[0] == after[0] and new_names.setdefault(before[1], after[1]) == after[1]
        if not is_same:
            return f"{what} {index + 1} was {_shown(before)} and is {_shown(after)}"
    if now.total < recorded.total:
        some = what.replace("reading", "readings") if "reading" in what else f"{what}s"
        taken = f"{now.total} {what if now.total == 1 else some}"
        return f"it {takes} {taken}, and {recorded.total} {were_taken} in the recorded run"
    return ""


def _without_seeds(taken: DrawSequence) -> DrawSequence:
    own = tuple(draw for draw in taken.draws if draw[0] != _SEED)
    return DrawSequence(own, taken.total - len(taken.draws) + len(own))


def _of_functions(taken: DrawSequence) -> DrawSequence:
    own: Sequence[Draw] = tuple(draw for draw in taken.draws if draw[1])
    return DrawSequence(tuple(own), len(own))


def _shown(draw: Draw) -> str:
    return f"{draw[0]} in {draw[1]}" if draw[1] else draw[0]
