"""Translate inputs that differ between two recordings into the orders for a mixed recording."""

from __future__ import annotations

from collections.abc import Collection

from replaydbg.bisect.twins import Input, InputKind
from replaydbg.log.edit.mix import Mixture


def mixture(inputs: Collection[Input], *, is_bad_base: bool) -> Mixture:
    """Return what to take from the good recording where the bad one is the base, else from the bad one."""
    of = {kind: [each for each in inputs if each.kind is kind] for kind in InputKind}
    answers = of[InputKind.ANSWER]

    def here(each: Input) -> int:
        return each.bad_event if is_bad_base else each.good_event

    return Mixture(
        answers={here(each): each.good_event if is_bad_base else each.bad_event for each in answers},
        outcomes={here(each): each.good if is_bad_base else each.bad_elapsed for each in answers if each.is_elapsed},
        hash_seed=bool(of[InputKind.HASH_SEED]),
        arguments=bool(of[InputKind.ARGUMENTS]),
        directory=bool(of[InputKind.DIRECTORY]),
        environment=frozenset(each.name for each in of[InputKind.ENVIRONMENT]),
    )
