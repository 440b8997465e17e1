"""Two sequences are aligned: in order, equal with equal, both ends kept, the same with the sides exchanged."""

import random
import time
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from replaydbg.bisect import align as module
from replaydbg.bisect.align import Match, align, gaps, pairs

SEQUENCES = st.one_of(
    st.text("ab", max_size=12), st.text("abcdef", max_size=30), st.text("abcdefghijklmnopqrstuvw", max_size=60)
)


def _common(one: str, two: str) -> int:
    return next(
        (index for index, (left, right) in enumerate(zip(one, two, strict=False)) if left != right),
        min(len(one), len(two)),
    )


@pytest.mark.parametrize("edits", [1, 2, 64])
def test_the_laws_hold(edits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lookahead distance changes the result, but none of the laws."""
    monkeypatch.setattr(module, "MOST_EDITS", edits)

    _laws()


@given(before=SEQUENCES, after=SEQUENCES)
@example(before="", after="")
@example(before="aa", after="a")
@example(before="ab", after="ba")
def _laws(before: str, after: str) -> None:
    matches = align(before, after)
    joined = list(pairs(matches))

    assert all(before[old] == after[new] for old, new in joined)
    assert all(one[0] < two[0] and one[1] < two[1] for one, two in pairwise(joined))
    assert all(match.length > 0 for match in matches)
    head = _common(before, after)
    assert joined[:head] == [(index, index) for index in range(head)]
    tail = min(_common(before[::-1], after[::-1]), len(before) - head, len(after) - head)
    ends = [(len(before) - 1 - index, len(after) - 1 - index) for index in reversed(range(tail))]
    assert joined[len(joined) - tail :] == ends
    assert align(after, before) == [Match(new, old, length) for old, new, length in matches]
    apart = list(gaps(matches, len(before), len(after)))
    assert sum(len(old) for old, _ in apart) + len(joined) == len(before)
    assert sum(len(new) for _, new in apart) + len(joined) == len(after)


def test_what_has_nothing_unique_is_aligned_as_shortly_as_can_be() -> None:
    matches = align("abcabba" * 2, "cbabac" * 2)

    assert sum(match.length for match in matches) >= 7


def test_a_change_in_the_middle_is_found_there() -> None:
    assert align("0123x456789", "0123yz456789") == [Match(0, 0, 4), Match(5, 6, 6)]


@pytest.mark.slow
def test_long_sequences_take_seconds_at_most() -> None:
    drawn = random.Random(7)
    before = [drawn.randrange(40) for _ in range(200_000)]
    after = [each for each in before if drawn.random() > 0.01]
    began = time.process_time()

    matches = align(before, after)

    assert time.process_time() - began < 20
    assert sum(match.length for match in matches) > 0.9 * len(after)
