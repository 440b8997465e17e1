"""The search for the first bad one of many places: against a scan of all of them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from replaydbg.bisect.search import Answer, search
from replaydbg.events.verdict import Verdict

GOOD, BAD, UNDECIDED = Verdict.GOOD, Verdict.BAD, Verdict.UNDECIDED


class History:
    """The verdict of each place, and the number of looks."""

    def __init__(self, verdicts: Sequence[Verdict]) -> None:
        self.verdicts = verdicts
        self.looks: list[int] = []
        self.rounds = 0

    def look(self, places: Sequence[int]) -> list[Verdict]:
        self.rounds += 1
        self.looks += places
        return [self.verdicts[at] for at in places]


def first_bad(verdicts: Sequence[Verdict]) -> int:
    return next((at for at, each in enumerate(verdicts) if each is BAD), -1)


def monotone(places: int, bad: int) -> list[Verdict]:
    return [GOOD] * bad + [BAD] * (places - bad)


def test_a_history_that_changes_once_takes_no_more_looks_than_a_logarithm_and_two() -> None:
    for places in (1, 2, 3, 5, 6, 7, 8, 9, 31, 32, 33, 200, 1000):
        for bad in {*range(min(places, 40)), places // 2, places - 1, places}:
            history = History(monotone(places, bad))
            found = search(places, history.look, checks=0)
            assert len(history.looks) == len(set(history.looks)) == found.searched
            assert len(history.looks) <= math.log2(places) + 2, (places, bad)
            assert found.first_bad == (bad if bad < places else -1)
            assert found.is_monotone
            assert found.answer is (Answer.NEVER if bad == places else Answer.ALWAYS if bad == 0 else Answer.FOUND)


def test_several_at_once_take_fewer_rounds() -> None:
    for width in (2, 3, 7):
        for bad in range(1, 1000, 37):
            history = History(monotone(1000, bad))
            assert search(1000, history.look, width=width, checks=0).first_bad == bad
            assert history.rounds <= math.log(1000, width + 1) + 3


def test_checks_are_counted_apart_and_are_no_more_than_asked() -> None:
    history = History(monotone(1000, 300))
    found = search(1000, history.look, checks=8)
    assert found.searched <= math.log2(1000) + 2
    assert len(history.looks) <= found.searched + 8
    assert found.is_monotone


verdicts_of_all_kinds = st.lists(st.sampled_from([GOOD, BAD, UNDECIDED]), min_size=1, max_size=60)


@settings(max_examples=500, deadline=None)
@given(verdicts_of_all_kinds, st.integers(1, 4))
def test_whoever_checks_all_agrees_with_a_scan(verdicts: list[Verdict], width: int) -> None:
    found = search(len(verdicts), History(verdicts).look, width=width, checks=len(verdicts))
    if verdicts[-1] is BAD:
        bad = first_bad(verdicts)
        good = max((at for at in range(bad) if verdicts[at] is GOOD), default=-1)
        assert (found.first_bad, found.last_good) == (bad, good)
        assert found.undecided == tuple(range(good + 1, bad))
    else:
        assert found.answer is Answer.NEVER
        assert bool(found.unfit) == (BAD in verdicts), "bad ones in between are told"


def test_500_histories_of_states_agree_with_a_scan_or_say_why_not() -> None:
    chance = random.Random(7)
    for _ in range(500):
        places = chance.randint(2, 400)
        state, states = 0, []
        for _ in range(places):
            state += chance.choice((0, 1, 1, 3)) if chance.random() < 0.9 else chance.choice((-5, 0, 4))
            states.append(state)
        limit = chance.randint(-5, 3 * places)
        verdicts = [BAD if each > limit else GOOD for each in states]
        found = search(places, History(verdicts).look, checks=8)
        truth = first_bad(verdicts)
        changes = sum(a is not b for a, b in pairwise(verdicts))
        if changes <= 1:
            assert (found.first_bad, found.is_monotone) == (truth, True)
        elif found.answer is Answer.FOUND:
            assert verdicts[found.first_bad] is BAD
            assert verdicts[found.last_good] is GOOD
            assert found.last_good == found.first_bad - 1
            assert search(places, History(verdicts).look, checks=places).first_bad == truth


@settings(max_examples=300, deadline=None)
@given(st.integers(2, 200), st.data())
def test_undecided_places_are_never_taken_permanent(places: int, data: st.DataObject) -> None:
    bad = data.draw(st.integers(1, places - 1))
    verdicts = monotone(places, bad)
    for at in data.draw(st.sets(st.integers(0, places - 2), max_size=places // 2)):
        verdicts[at] = UNDECIDED
    found = search(places, History(verdicts).look, checks=0)
    decided_good = [at for at in range(bad) if verdicts[at] is GOOD]
    assert found.last_good == (decided_good[-1] if decided_good else -1)
    assert verdicts[found.first_bad] is BAD
    assert all(verdicts[at] is UNDECIDED for at in found.undecided)
    assert found.last_good + len(found.undecided) + 1 == found.first_bad


def test_a_history_that_changes_back_is_named() -> None:
    verdicts = [*monotone(50, 10), *monotone(50, 20)]
    found = search(100, History(verdicts).look)
    assert not found.is_monotone
    assert found.first_bad in (10, 70)


@given(st.integers(0, 5000), st.integers(0, 300), st.integers(1, 300), st.integers(1, 4))
def test_a_long_time_in_which_nothing_can_be_told_is_not_looked_through(
    undecided: int, good: int, bad: int, width: int
) -> None:
    history = History([UNDECIDED] * undecided + [GOOD] * good + [BAD] * bad)
    places = len(history.verdicts)

    found = search(places, history.look, width=width, checks=0, most_undecided=20)

    assert found.first_bad == undecided + good
    assert found.last_good == (undecided + good - 1 if good else -1)
    assert len(history.looks) <= 20 + (width + 1) * (2 * math.log2(places) + 4)
