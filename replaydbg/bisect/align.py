"""Align two sequences: a difference in bounded memory, for hundreds of thousands of items.

Common ends are removed first. Items that are unique on both sides of the rest are the anchors (as in a patience
difference), of which the longest increasing sequence is kept; between two anchors the same is repeated. Without
anchors, Myers' algorithm proceeds with a bounded number of edits at a time, so a long stretch without anything in
common costs time linear in its length, and the result may be longer than the shortest there, but is never wrong.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

MOST_EDITS = 64
"""Number of edits that are looked ahead without an anchor.

The time for such a stretch grows with it, and the memory with its square; a difference of one more or fewer loop seldom
has more in one place.
"""

_Ids = Sequence[int]


class Match(NamedTuple):
    """Matching items, one after the other."""

    before: int
    """The index of the first one in one sequence."""
    after: int
    """Its index in the other one."""
    length: int
    """The number of items."""


def align(before: Sequence[Hashable], after: Sequence[Hashable]) -> list[Match]:
    """Return the matching items: equal ones only, in the same order on both sides.

    A common beginning and a common end are kept. Exchanging the sides exchanges the answer.
    """
    numbers: dict[Hashable, int] = {}
    old = [numbers.setdefault(item, len(numbers)) for item in before]
    new = [numbers.setdefault(item, len(numbers)) for item in after]
    if not _is_swapped(before, after):
        return _joined(_aligned(old, new))
    return [Match(match.before, match.after, match.length) for match in _swapped(_joined(_aligned(new, old)))]


def pairs(matches: Sequence[Match]) -> Iterator[tuple[int, int]]:
    """Yield the indices of matching items."""
    for before, after, length in matches:
        yield from zip(range(before, before + length), range(after, after + length), strict=True)


def gaps(matches: Sequence[Match], before: int, after: int) -> Iterator[tuple[range, range]]:
    """Yield the gaps between two matches, of sequences of these lengths; one of the two sides may be empty."""
    old = new = 0
    for match in [*matches, Match(before, after, 0)]:
        if old < match.before or new < match.after:
            yield range(old, match.before), range(new, match.after)
        old, new = match.before + match.length, match.after + match.length


def _is_swapped(before: Sequence[Hashable], after: Sequence[Hashable]) -> bool:
    """Whether the sides are exchanged: the result must not depend on their order, and some choices are arbitrary."""
    if len(before) != len(after):
        return len(before) > len(after)
    first = next(((old, new) for old, new in zip(before, after, strict=True) if old != new), None)
    return first is not None and repr(first[0]) > repr(first[1])


def _swapped(matches: list[Match]) -> list[Match]:
    return [Match(match.after, match.before, match.length) for match in matches]


def _joined(found: list[Match]) -> list[Match]:
    joined: list[Match] = []
    for match in sorted(found):
        last = joined[-1] if joined else None
        if last is not None and (last.before + last.length, last.after + last.length) == match[:2]:
            joined[-1] = last._replace(length=last.length + match.length)
        elif match.length:
            joined.append(match)
    return joined


def _aligned(old: _Ids, new: _Ids) -> list[Match]:
    found: list[Match] = []
    # A list in place of recursion: there may be as many levels as items.
    waiting = [(0, len(old), 0, len(new))]
    while waiting:
        first, last, start, end = waiting.pop()
        head = _common_head(old, new, first, last, start, end)
        found.append(Match(first, start, head))
        first, start = first + head, start + head
        tail = _common_tail(old, new, first, last, start, end)
        last, end = last - tail, end - tail
        found.append(Match(last, end, tail))
        if first == last or start == end:
            continue
        anchors = _anchors(old, new, range(first, last), range(start, end))
        if not anchors:
            found += _walked(old, new, first, last, start, end)
            continue
        for index, other in anchors:
            waiting.append((first, index, start, other))
            first, start = index, other
        waiting.append((first, last, start, end))
    return found


def _common_head(old: _Ids, new: _Ids, first: int, last: int, start: int, end: int) -> int:
    most = min(last - first, end - start)
    for length in range(most):
        if old[first + length] != new[start + length]:
            return length
    return most


def _common_tail(old: _Ids, new: _Ids, first: int, last: int, start: int, end: int) -> int:
    most = min(last - first, end - start)
    for length in range(most):
        if old[last - 1 - length] != new[end - 1 - length]:
            return length
    return most


def _anchors(old: _Ids, new: _Ids, here: range, there: range) -> list[tuple[int, int]]:
    """Return the longest sequence, in order on both sides, of items that occur exactly once on both."""
    counts = Counter(old[index] for index in here)
    others = Counter(new[index] for index in there)
    places = {new[index]: index for index in there if others[new[index]] == 1}
    unique = [(index, places[old[index]]) for index in here if counts[old[index]] == 1 and old[index] in places]
    # Patience: the smallest end of a sequence of each length, and its predecessor.
    ends: list[int] = []
    tops: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(unique):
        length = bisect_left(ends, place)
        ends[length : length + 1] = [place]
        tops[length : length + 1] = [number]
        before.append(tops[length - 1] if length else -1)
    row: list[tuple[int, int]] = []
    number = tops[-1] if tops else -1
    while number >= 0:
        row.append(unique[number])
        number = before[number]
    return row[::-1]


def _walked(old: _Ids, new: _Ids, first: int, last: int, start: int, end: int) -> Iterator[Match]:
    """Yield the matches of a stretch without anchors, MOST_EDITS edits at a time."""
    while first < last and start < end:
        snakes, first, start = _stretch(old, new, first, last, start, end)
        yield from snakes


def _stretch(old: _Ids, new: _Ids, first: int, last: int, start: int, end: int) -> tuple[list[Match], int, int]:
    """Return the matches of the best walk with at most MOST_EDITS edits, and its end position (Myers 1986)."""
    furthest = {1: first}
    steps: list[dict[int, int]] = []
    shift = start - first
    for edits in range(MOST_EDITS + 1):
        steps.append(dict(furthest))
        for diagonal in range(-edits, edits + 1, 2):
            is_down = diagonal == -edits or (
                diagonal != edits and furthest.get(diagonal - 1, -1) < furthest.get(diagonal + 1, -1)
            )
            index = furthest.get(diagonal + 1, -1) if is_down else furthest.get(diagonal - 1, -1) + 1
            other = index - diagonal + shift
            if index < first or index > last or other > end or other < start:
                furthest[diagonal] = first - 2  # over the edge: nothing leads on from here
                continue
            while index < last and other < end and old[index] == new[other]:
                index, other = index + 1, other + 1
            furthest[diagonal] = index
            if index == last and other == end:
                return _walk(steps, first, start, index, other), index, other
    reached = [(2 * index - each, each, index) for each, index in furthest.items() if index >= first]
    _, diagonal, index = max(each for each in reached if (each[1] - MOST_EDITS) % 2 == 0)
    other = index - diagonal + shift
    return _walk(steps, first, start, index, other), index, other


def _walk(steps: list[dict[int, int]], first: int, start: int, index: int, other: int) -> list[Match]:
    """Return the matches on the way to a position, by going back through the positions reached with fewer edits."""
    found: list[Match] = []
    shift = start - first
    for edits in range(len(steps) - 1, -1, -1):
        diagonal = index - other + shift
        furthest = steps[edits]
        is_down = diagonal == -edits or (
            diagonal != edits and furthest.get(diagonal - 1, -1) < furthest.get(diagonal + 1, -1)
        )
        previous = diagonal + 1 if is_down else diagonal - 1
        begun = furthest.get(previous, first) if edits else first
        came = begun if is_down or not edits else begun + 1
        found.append(Match(came, came - diagonal + shift, index - came))
        if not edits:
            break
        index, other = begun, begun - previous + shift
    return found
