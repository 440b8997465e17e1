"""Find the commits at which the verdict about a recording changes: a pure function over the graph of commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from replaydbg.regressions.code_verdicts import CodeState

FIXED, BROKE, CHANGED = "fixed", "broke", "changed"
"""Before a turning point the code failed, and passes after it; or the reverse; or it fails in another way."""


@dataclass(frozen=True, slots=True)
class TurningPointOfCode:
    """A commit at which the state of a recording is another one than before."""

    kind: str
    """FIXED, BROKE or CHANGED."""
    commit: str
    """The first commit with the new state, by its full name."""
    suspects: tuple[str, ...]
    """The commits one of which made the change, oldest first: that one, and those before it that are inconclusive."""
    before: CodeState
    after: CodeState


class Carried(NamedTuple):
    """What is known about the code behind a commit."""

    states: frozenset[CodeState]
    """The states at the nearest commits that could be tested: that one, or ancestors."""
    inconclusive: tuple[str, ...]
    """The commits between them and this one, itself included, that could not be."""


def carried_states(
    order: Sequence[str], parents: Mapping[str, Sequence[str]], states: Mapping[str, CodeState]
) -> dict[str, Carried]:
    """Return what is known at each commit; `order` has parents before their children."""
    found: dict[str, Carried] = {}
    for commit in order:
        state = states.get(commit, CodeState.UNKNOWN)
        if state is not CodeState.UNKNOWN:
            found[commit] = Carried(frozenset((state,)), ())
            continue
        before = _before(commit, parents, found)
        found[commit] = Carried(before.states, (*before.inconclusive, commit))
    return found


def turning_points(
    order: Sequence[str], parents: Mapping[str, Sequence[str]], states: Mapping[str, CodeState]
) -> tuple[TurningPointOfCode, ...]:
    """Return the commits whose state is that of none of their parents, oldest first.

    A merge whose state is that of one of its parents changes nothing: the change is on that side. A parent that could
    not be tested counts as the nearest ancestors that could be.
    """
    carried = carried_states(order, parents, states)
    found = []
    for commit in order:
        state = states.get(commit, CodeState.UNKNOWN)
        before = _before(commit, parents, carried)
        if state is CodeState.UNKNOWN or not before.states or state in before.states:
            continue
        was = CodeState.PASSES if CodeState.PASSES in before.states else min(before.states, key=lambda each: each.value)
        kind = FIXED if state is CodeState.PASSES else BROKE if was is CodeState.PASSES else CHANGED
        found.append(TurningPointOfCode(kind, commit, (*before.inconclusive, commit), was, state))
    return tuple(found)


def _before(commit: str, parents: Mapping[str, Sequence[str]], carried: Mapping[str, Carried]) -> Carried:
    above = [carried[each] for each in parents.get(commit, ()) if each in carried]
    states = frozenset(state for each in above for state in each.states)
    return Carried(states, tuple(dict.fromkeys(name for each in above for name in each.inconclusive)))
