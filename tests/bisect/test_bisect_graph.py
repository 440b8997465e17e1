"""The choice of the next commit: against brute force, on random histories with merges and untestable commits."""

import math
import random
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replaydbg.bisect.confidence import chance_of_passing, runs_needed
from replaydbg.bisect.graph import CommitGraph, Narrowed, choose, is_informative, narrow
from replaydbg.events.verdict import Verdict

GOOD, BAD, UNDECIDED = Verdict.GOOD, Verdict.BAD, Verdict.UNDECIDED


def line(length: int) -> CommitGraph:
    names = [str(number) for number in range(length)]
    return CommitGraph(tuple(names), {name: (names[at - 1],) if at else ("good",) for at, name in enumerate(names)})


@st.composite
def histories(draw: st.DrawFn) -> CommitGraph:
    """Draw a history in which every commit is an ancestor of the last one."""
    size = draw(st.integers(1, 14))
    parents: dict[str, tuple[str, ...]] = {}
    heads: list[str] = []
    for number in range(size):
        known = list(parents)
        chosen = draw(st.lists(st.sampled_from([*known, "good"]), min_size=1, max_size=2, unique=True))
        parents[str(number)] = tuple(chosen)
        heads = [head for head in heads if head not in chosen] + [str(number)]
    if len(heads) > 1:
        parents[str(size)] = tuple(heads)
    return CommitGraph(tuple(parents), parents)


def ancestors(history: CommitGraph, name: str) -> set[str]:
    found = {name}
    for parent in history.parents[name]:
        if parent in history.parents:
            found |= ancestors(history, parent)
    return found


def search(
    history: CommitGraph, look: Callable[[str], Verdict], *, jobs: int = 1, seed: int = 0
) -> tuple[Narrowed, dict[str, Verdict]]:
    """Look until no further look is informative; with several jobs the looks end in any order."""
    rng = random.Random(seed)
    verdicts = {history.end: BAD}
    running: list[str] = []
    while True:
        running = [name for name in running if is_informative(history, verdicts, name)]
        running += choose(history, verdicts, most=jobs - len(running), running=running) if len(running) < jobs else ()
        assert len(set(running)) == len(running) and not set(running) & set(verdicts)
        if not running:
            return narrow(history, verdicts), verdicts
        name = running.pop(rng.randrange(len(running)))
        verdicts[name] = look(name)


@settings(max_examples=400, deadline=None)
@given(history=histories(), data=st.data())
def test_suspects_are_those_that_no_look_can_tell_apart(history: CommitGraph, data: st.DataObject) -> None:
    culprit = data.draw(st.sampled_from(history.order))
    untestable = data.draw(st.sets(st.sampled_from(history.order))) - {history.end}
    jobs = data.draw(st.integers(1, 3))
    above = {name: ancestors(history, name) for name in history.order}

    def look(name: str) -> Verdict:
        return UNDECIDED if name in untestable else BAD if culprit in above[name] else GOOD

    left, _ = search(history, look, jobs=jobs, seed=data.draw(st.integers(0, 99)))

    testable = [name for name in history.order if name not in untestable]
    expected = {
        name for name in history.order if all((name in above[each]) == (culprit in above[each]) for each in testable)
    }
    assert set(left.suspects) == expected
    assert left.aside == ()


@settings(max_examples=200, deadline=None)
@given(length=st.integers(1, 300), data=st.data())
def test_a_line_of_commits_is_halved_each_time(length: int, data: st.DataObject) -> None:
    culprit = data.draw(st.integers(0, length - 1))

    left, verdicts = search(line(length), lambda name: BAD if int(name) >= culprit else GOOD)

    assert left.suspects == (str(culprit),)
    assert len(verdicts) - 1 <= math.ceil(math.log2(length))


@settings(max_examples=200, deadline=None)
@given(truth=st.lists(st.sampled_from([GOOD, BAD]), min_size=1, max_size=60), jobs=st.integers(1, 4))
def test_a_failure_that_came_and_went_leads_to_a_commit_that_brought_it(truth: list[Verdict], jobs: int) -> None:
    truth[-1] = BAD

    left, verdicts = search(line(len(truth)), lambda name: truth[int(name)], jobs=jobs)

    (culprit,) = left.suspects
    assert verdicts[culprit] is BAD
    assert culprit == "0" or truth[int(culprit) - 1] is GOOD


@settings(max_examples=100, deadline=None)
@given(history=histories(), data=st.data())
def test_any_verdicts_leave_a_suspect(history: CommitGraph, data: st.DataObject) -> None:
    truth: Mapping[str, Verdict] = {name: data.draw(st.sampled_from(Verdict)) for name in history.order}

    left, _ = search(history, lambda name: truth[name], jobs=data.draw(st.integers(1, 3)))

    assert left.suspects


def test_a_row_of_untestable_commits_is_left_quickly() -> None:
    def look(name: str) -> Verdict:
        number = int(name)
        return UNDECIDED if 400 <= number < 600 else BAD if number >= 900 else GOOD

    left, verdicts = search(line(1024), look)

    assert left.suspects == ("900",)
    assert len(verdicts) <= 24


def test_untestable_commits_before_the_first_bad_one_are_a_range() -> None:
    left, _ = search(line(16), lambda name: UNDECIDED if name in ("6", "7") else BAD if int(name) >= 7 else GOOD)

    assert left.suspects == ("6", "7", "8")


def test_a_commit_of_another_branch_tells_untestable_ones_apart() -> None:
    # 0 is untestable; 1 and 2 are its children, 3 merges them. 2 is good, so it was not 0.
    history = CommitGraph(("0", "1", "2", "3"), {"0": ("good",), "1": ("0",), "2": ("0",), "3": ("1", "2")})

    left, _ = search(history, {"0": UNDECIDED, "1": BAD, "2": GOOD}.__getitem__)

    assert left.suspects == ("1",)


def test_a_merge_that_alone_is_bad() -> None:
    history = CommitGraph(("0", "1", "2"), {"0": ("good",), "1": ("good",), "2": ("0", "1")})

    left, _ = search(history, {"0": GOOD, "1": GOOD}.__getitem__)

    assert left.suspects == ("2",)


def test_two_culprits_on_two_branches_are_noticed() -> None:
    history = CommitGraph(("0", "1", "2"), {"0": ("good",), "1": ("good",), "2": ("0", "1")})

    assert narrow(history, {"2": BAD, "0": BAD, "1": BAD}) == Narrowed(("0",), ("1",))


@pytest.mark.slow
def test_a_long_history_with_merges_is_chosen_from_in_time() -> None:
    """A set of ancestors for each commit would take minutes, longer than any test may."""
    rng = random.Random(7)
    parents: dict[str, tuple[str, ...]] = {"0": ("good",)}
    for number in range(1, 60_000):
        second = (str(max(number - rng.randrange(2, 50), 0)),) if number % 5 == 0 else ()
        parents[str(number)] = (str(number - 1), *second)
    history = CommitGraph(tuple(parents), parents)

    (chosen,) = choose(history, {})

    assert abs(int(chosen) - 30_000) < 50


def test_runs_needed_for_a_flaky_failure() -> None:
    assert runs_needed(failed=1, measured=1, confidence=0.99) == 1
    assert runs_needed(failed=20, measured=20, confidence=0.95) == 1
    assert runs_needed(failed=10, measured=20, confidence=0.95) == 5
    assert runs_needed(failed=1, measured=10, confidence=0.999) > 100


@given(measured=st.integers(2, 60), data=st.data(), confidence=st.floats(0.5, 0.999))
def test_runs_needed_are_the_fewest_that_reach_the_confidence(
    measured: int, data: st.DataObject, confidence: float
) -> None:
    failed = data.draw(st.integers(1, measured))

    runs = runs_needed(failed=failed, measured=measured, confidence=confidence)

    assert chance_of_passing(runs, failed=failed, measured=measured) <= 1 - confidence + 1e-9
    assert runs == 1 or chance_of_passing(runs - 1, failed=failed, measured=measured) > 1 - confidence - 1e-9


@pytest.mark.parametrize(("failed", "confidence"), [(0, 0.9), (3, 0.9), (1, 0.0), (1, 1.0)])
def test_rates_that_make_no_sense(failed: int, confidence: float) -> None:
    with pytest.raises(ValueError, match="failed of"):
        runs_needed(failed=failed, measured=2, confidence=confidence)
