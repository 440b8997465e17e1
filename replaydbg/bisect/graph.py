"""Choose the next commit to test, in a history that branches and merges, and find the possible first bad commits.

The rule is that of `git bisect`: a failure at a commit was introduced by it or one of its ancestors, and where there is
none, by none of them. So a bad commit leaves only its ancestors and itself, a good one removes its ancestors and
itself, and the best commit to test is the one that halves the rest. Commits that cannot be tested stay: others around
them are tried, those of parallel branches too, and suspects that cannot be distinguished are returned whole.

Everything here is a function of the history and of the verdicts so far; nothing is kept between two calls.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from replaydbg.events.verdict import Verdict

_CHUNK = 4096
"""Number of commits at a time for which ancestors are counted, as the bits of one number: with all at once a history
of 100,000 commits would take 1.25 GB, with these 50 MB and about a second.
"""


@dataclass(frozen=True, slots=True)
class CommitGraph:
    """The candidates for the first bad commit: the commits of the bad end that the good ends do not have."""

    order: tuple[str, ...]
    """All candidates, parents before children; the last one is the bad end."""
    parents: Mapping[str, tuple[str, ...]]
    """The parents of each; those that are not in `order` are known to be good."""

    @property
    def end(self) -> str:
        """The bad end."""
        return self.order[-1]


@dataclass(frozen=True, slots=True)
class Narrowed:
    """The result of the verdicts so far."""

    suspects: tuple[str, ...]
    """The commits that may be the first bad one, parents before children; never empty."""
    aside: tuple[str, ...]
    """Bad commits that the first bad one does not explain: there was a repair in between, or there are two culprits."""


def narrow(history: CommitGraph, verdicts: Mapping[str, Verdict]) -> Narrowed:
    """Return which commits may be the first bad one.

    If verdicts contradict each other (a bad commit has a good descendant, or two bad ones no suspect in common), the
    earlier bad verdict in `verdicts` is kept, and the other set aside.
    """
    good = _ancestors(history, (name for name, verdict in verdicts.items() if verdict is Verdict.GOOD))
    suspects = {name for name in history.order if name not in good}
    aside = []
    for name, verdict in verdicts.items():
        if verdict is not Verdict.BAD:
            continue
        left = suspects & _ancestors(history, [name]) if name not in good else set()
        if left:
            suspects = left
        else:
            aside.append(name)
    return Narrowed(tuple(name for name in history.order if name in suspects), tuple(aside))


def choose(
    history: CommitGraph, verdicts: Mapping[str, Verdict], *, most: int = 1, running: Collection[str] = ()
) -> tuple[str, ...]:
    """Return at most `most` commits to test next, the most informative first; none if no test is informative.

    `running` are being tested already: the new ones complete them, so that together they cut the suspects into equal
    parts.
    """
    suspects = narrow(history, verdicts).suspects
    known = {name for name in verdicts if name in history.parents}
    if len(suspects) == 1:
        # The merge of two bad branches has not been tested.
        return suspects if suspects[0] not in known and suspects[0] not in running else ()
    total = len(suspects)
    weights = _weights(suspects, history.parents, suspects)
    useful = [name for name in suspects if name not in known and 0 < weights[name] < total]
    if not useful:
        # Descendants on other branches have some of the suspects and lack others.
        weights = _weights(history.order, history.parents, suspects)
        useful = [name for name in history.order if name not in known and 0 < weights[name] < total]
    undecided = [weights[name] for name in suspects if verdicts.get(name) is Verdict.UNDECIDED]
    waiting = [name for name in running if name in useful]
    return _spread([name for name in useful if name not in waiting], weights, total, undecided, waiting, most)


def is_informative(history: CommitGraph, verdicts: Mapping[str, Verdict], name: str) -> bool:
    """Whether testing `name`, which has no verdict yet, can still be informative."""
    suspects = narrow(history, verdicts).suspects
    if len(suspects) == 1:
        return name == suspects[0]
    return 0 < len(_ancestors(history, [name]).intersection(suspects)) < len(suspects)


def _spread(
    names: Sequence[str],
    weights: Mapping[str, int],
    total: int,
    undecided: Sequence[int],
    waiting: Sequence[str],
    most: int,
) -> tuple[str, ...]:
    """Return the names whose weights come nearest to cutting `total` into equal parts, together with those waiting."""
    parts = most + len(waiting) + 1
    aims = [total * part / parts for part in range(1, parts)]
    for name in waiting:
        aims.remove(min(aims, key=lambda aim: abs(aim - weights[name])))
    # The middle first: if fewer are wanted in the end, they are the better ones.
    aims.sort(key=lambda aim: abs(aim - total / 2))
    chosen: list[str] = []
    for aim in aims:
        left = [name for name in names if name not in chosen]
        if not left:
            break
        far = _away(left, weights, total, undecided)
        chosen.append(min(far, key=lambda name: abs(weights[name] - aim)))
    return tuple(chosen)


def _away(names: Sequence[str], weights: Mapping[str, int], total: int, undecided: Sequence[int]) -> Sequence[str]:
    """Return those that are far from the inconclusive ones, the farther the more of these there were.

    Commits that do not build come in rows. Going to the next neighbour each time would try the whole row before a
    conclusive one.
    """
    reach = min(1 << max(len(undecided) - 1, 0), total // 4) if undecided else 0
    while reach > 1:
        far = [name for name in names if min(abs(weights[name] - each) for each in undecided) >= reach]
        if far:
            return far
        reach //= 2
    return names


def _ancestors(history: CommitGraph, names: Iterable[str]) -> set[str]:
    """Return `names` and their ancestors, as far as they belong to the history."""
    found: set[str] = set()
    waiting = [name for name in names if name in history.parents]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += (parent for parent in history.parents[name] if parent in history.parents)
    return found


def _weights(order: Sequence[str], parents: Mapping[str, tuple[str, ...]], suspects: Sequence[str]) -> dict[str, int]:
    """Return for each of `order` the number of suspects among its ancestors and itself."""
    weights = dict.fromkeys(order, 0)
    for first in range(0, len(suspects), _CHUNK):
        bits = {name: 1 << index for index, name in enumerate(suspects[first : first + _CHUNK])}
        masks: dict[str, int] = {}
        for name in order:
            mask = bits.get(name, 0)
            for parent in parents[name]:
                mask |= masks.get(parent, 0)
            if mask:
                masks[name] = mask
                weights[name] += mask.bit_count()
    return weights
