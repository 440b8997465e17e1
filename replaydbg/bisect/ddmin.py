"""Delta debugging: the smallest part of many changes that still has an effect (Zeller and Hildebrandt, 2002)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from typing import Generic, TypeVar

from replaydbg.events.verdict import Verdict

T = TypeVar("T", bound=Hashable)

Trial = Callable[[Sequence[tuple[T, ...]]], Sequence[Verdict]]
"""Tests sets of changes: each has the effect (BAD), does not have it (GOOD), or is inconclusive (UNDECIDED)."""


def minimal(changes: Sequence[T], trial: Trial[T], *, at_once: int = 1) -> tuple[T, ...]:
    """Return a part of `changes` that has the effect, and loses it without any single one of them.

    The order is kept. `at_once` sets are tried at a time. Nothing is tried twice, and `changes` as a whole is not tried
    at all: it is known to have the effect. If the empty set has it too, the result is empty.
    """
    tried = _Tried(trial, at_once)
    kept = tuple(changes)
    if not kept or tried.first([()]) is not None:
        return ()
    parts = 2
    while len(kept) > 1:
        chunks = _split(kept, parts)
        found = tried.first(chunks)
        if found is not None:
            kept, parts = found, 2
            continue
        # Of two parts each is the complement of the other: they were tried.
        found = tried.first([_without(kept, chunk) for chunk in chunks]) if parts > 2 else None
        if found is not None:
            kept, parts = found, max(parts - 1, 2)
        elif parts >= len(kept):
            break
        else:
            parts = min(2 * parts, len(kept))
    return kept


def minimal_in_groups(groups: Sequence[Sequence[T]], trial: Trial[T], *, at_once: int = 1) -> tuple[T, ...]:
    """Do as `minimal` with all changes of all groups, whole groups first: similar changes often matter together."""

    def by_groups(sets: Sequence[tuple[int, ...]]) -> Sequence[Verdict]:
        return trial([tuple(change for number in numbers for change in groups[number]) for numbers in sets])

    left = minimal(range(len(groups)), by_groups, at_once=at_once)
    return minimal([change for number in left for change in groups[number]], trial, at_once=at_once)


class _Tried(Generic[T]):
    """The sets of changes that were tried, with their results."""

    def __init__(self, trial: Trial[T], at_once: int) -> None:
        self.trial, self.at_once = trial, at_once
        self.known: dict[tuple[T, ...], Verdict] = {}

    def first(self, sets: Sequence[tuple[T, ...]]) -> tuple[T, ...] | None:
        """Return the first of `sets` that has the effect."""
        for start in range(0, len(sets), self.at_once):
            batch = sets[start : start + self.at_once]
            new = [each for each in dict.fromkeys(batch) if each not in self.known]
            if new:
                self.known.update(zip(new, self.trial(new), strict=True))
            for each in batch:
                if self.known[each] is Verdict.BAD:
                    return each
        return None


def _split(changes: tuple[T, ...], parts: int) -> list[tuple[T, ...]]:
    ends = [len(changes) * number // parts for number in range(parts + 1)]
    return [changes[first:last] for first, last in pairwise(ends)]


def _without(changes: tuple[T, ...], chunk: tuple[T, ...]) -> tuple[T, ...]:
    left = set(chunk)
    return tuple(each for each in changes if each not in left)
