"""Turning points: the commits whose state is that of none of their parents, also where some cannot be tested."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from replaydbg.regressions.code_verdicts import CodeState
from replaydbg.regressions.turning_points import BROKE, CHANGED, FIXED, carried_states, turning_points

LETTERS = {"F": CodeState.FAILS, "P": CodeState.PASSES, "d": CodeState.DIFFERS, "?": CodeState.UNKNOWN}


def line(text: str) -> list[tuple[str, str, int]]:
    """Return the turning points of commits in a row: the kind, the commit, and the number of suspects."""
    order = [str(number) for number in range(len(text))]
    parents = {name: (order[number - 1],) for number, name in enumerate(order) if number}
    states = {name: LETTERS[letter] for name, letter in zip(order, text, strict=True)}
    return [(each.kind, each.commit, len(each.suspects)) for each in turning_points(order, parents, states)]


def test_commits_in_a_row() -> None:
    assert line("FFFPPP") == [(FIXED, "3", 1)]
    assert line("FPFP") == [(FIXED, "1", 1), (BROKE, "2", 1), (FIXED, "3", 1)]
    assert line("FdFP") == [(CHANGED, "1", 1), (CHANGED, "2", 1), (FIXED, "3", 1)]
    assert line("Pd") == [(BROKE, "1", 1)]
    assert line("F??P?") == [(FIXED, "3", 3)]
    assert line("F?F?P") == [(FIXED, "4", 2)]
    assert line("??P") == []
    assert line("") == []


def test_a_merge_that_brings_what_one_side_had_changes_nothing() -> None:
    order = ["base", "side", "main", "merge"]
    parents = {"side": ("base",), "main": ("base",), "merge": ("main", "side")}
    states = dict.fromkeys(order, CodeState.FAILS) | {"side": CodeState.PASSES, "merge": CodeState.PASSES}

    assert [(each.kind, each.commit) for each in turning_points(order, parents, states)] == [(FIXED, "side")]

    states["side"] = CodeState.FAILS
    assert [(each.kind, each.commit) for each in turning_points(order, parents, states)] == [(FIXED, "merge")]


def test_an_undecided_side_of_a_merge_is_a_suspect() -> None:
    order = ["base", "side", "main", "merge"]
    parents = {"side": ("base",), "main": ("base",), "merge": ("main", "side")}
    states = {"base": CodeState.FAILS, "side": CodeState.UNKNOWN, "main": CodeState.FAILS, "merge": CodeState.PASSES}

    (point,) = turning_points(order, parents, states)

    assert point.suspects == ("side", "merge")


@given(st.text("FPd?", max_size=12))
def test_turns_of_a_row_are_the_changes_between_decided_neighbours(text: str) -> None:
    decided = [(number, letter) for number, letter in enumerate(text) if letter != "?"]

    expected = [(str(number), number - before) for (before, was), (number, now) in pairwise(decided) if was != now]

    assert [(commit, suspects) for _, commit, suspects in line(text)] == expected


@given(st.lists(st.tuples(st.sampled_from("FPd?"), st.sets(st.integers(1, 8), max_size=3)), max_size=12))
def test_no_point_has_the_state_of_a_parent_and_each_other_change_is_one(commits: list[tuple[str, set[int]]]) -> None:
    order = [str(number) for number in range(len(commits))]
    parents = {
        str(number): tuple(str(number - back) for back in sorted(backs) if number - back >= 0)
        for number, (_, backs) in enumerate(commits)
    }
    states = {str(number): LETTERS[letter] for number, (letter, _) in enumerate(commits)}

    def reached(name: str) -> set[CodeState]:
        """Return the states of the nearest ancestors that are decided."""
        above = parents[name]
        return {state for each in above for state in ({states[each]} - {CodeState.UNKNOWN} or reached(each))}

    points = {each.commit for each in turning_points(order, parents, states)}

    for name in order:
        is_point = states[name] is not CodeState.UNKNOWN and bool(reached(name)) and states[name] not in reached(name)
        assert (name in points) == is_point
    carried = carried_states(order, parents, states)
    assert all(carried[name].states == ({states[name]} - {CodeState.UNKNOWN} or reached(name)) for name in order)
