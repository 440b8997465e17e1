"""Delta debugging returns a set that has the effect, and loses it without any one of its changes."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.bisect.ddmin import minimal, minimal_in_groups
from replaydbg.events.verdict import Verdict

BAD, GOOD, UNDECIDED = Verdict.BAD, Verdict.GOOD, Verdict.UNDECIDED


class Answers:
    """Arbitrary answers, equal for equal sets; all changes together have the effect, the empty set does not."""

    def __init__(self, seed: int, most: int) -> None:
        self.seed, self.most = seed, most
        self.tried: list[tuple[int, ...]] = []

    def one(self, changes: tuple[int, ...]) -> Verdict:
        if len(changes) in (0, self.most):
            return BAD if changes else GOOD
        return random.Random(f"{self.seed} {changes}").choice([BAD, GOOD, UNDECIDED])

    def __call__(self, sets: Sequence[tuple[int, ...]]) -> list[Verdict]:
        self.tried += sets
        return [self.one(each) for each in sets]


@given(seed=st.integers(0, 10**6), most=st.integers(1, 24), at_once=st.integers(1, 3))
def test_it_is_minimal_whatever_the_answers(seed: int, most: int, at_once: int) -> None:
    answers = Answers(seed, most)

    found = minimal(range(most), answers, at_once=at_once)

    assert answers.one(found) is BAD
    assert all(answers.one(found[:index] + found[index + 1 :]) is not BAD for index in range(len(found)))
    assert len(set(answers.tried)) == len(answers.tried)


@given(wanted=st.sets(st.integers(0, 63), max_size=5), at_once=st.integers(1, 4), size=st.integers(1, 9))
def test_what_is_needed_is_found(wanted: set[int], at_once: int, size: int) -> None:
    groups = [range(start, min(start + size, 64)) for start in range(0, 64, size)]

    def trial(sets: Sequence[tuple[int, ...]]) -> list[Verdict]:
        return [BAD if wanted <= set(each) else GOOD for each in sets]

    assert minimal(range(64), trial, at_once=at_once) == tuple(sorted(wanted))
    assert minimal_in_groups(groups, trial, at_once=at_once) == tuple(sorted(wanted))


def test_one_among_a_thousand_takes_few_trials() -> None:
    tried: list[tuple[int, ...]] = []

    def trial(sets: Sequence[tuple[int, ...]]) -> list[Verdict]:
        tried.extend(sets)
        return [BAD if 611 in each else GOOD for each in sets]

    assert minimal(range(1000), trial) == (611,)
    assert len(tried) <= 21


@pytest.mark.parametrize("changes", [(), (5,)])
def test_few_changes_need_no_search(changes: tuple[int, ...]) -> None:
    assert minimal(changes, lambda sets: [GOOD] * len(sets)) == changes
