"""A chain of consistent cuts through a run: each goes further than the one before it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate

from replaydbg.distributed.cuts import CutFinder
from replaydbg.distributed.matching.columns import Member
from replaydbg.log.transfers import RECEIVES


def chain_of_cuts(
    finder: CutFinder, members: Sequence[Member], allowed: Mapping[int, Sequence[int]]
) -> list[dict[int, int]]:
    """Return the latest consistent cut at each time at which a process comes to one of its allowed positions.

    The time is that of the group's clock: the last ticket that a process has taken by then. The chain is one path
    through all consistent cuts; others differ in events that are concurrent.
    """
    times: list[tuple[int, int, int]] = []
    for process, clock in clocks_of(members).items():
        times += [(clock.at(position), process, position) for position in allowed[process]]
    wanted = dict.fromkeys(finder.last, 0)
    chain: list[dict[int, int]] = [dict(wanted)]
    for _, process, position in sorted(times):
        wanted[process] = max(wanted[process], position)
        cut = finder.latest(wanted, allowed)
        if cut != chain[-1]:
            chain.append(cut)
    return chain


def clocks_of(members: Sequence[Member]) -> dict[int, PositionClock]:
    """Return the clock of each process."""
    return {member.process: PositionClock(member) for member in members}


class PositionClock:
    """The last ticket of a process by its positions."""

    def __init__(self, member: Member) -> None:
        columns = member.transfers
        rows = zip(columns.event, columns.begun, columns.flags, columns.ticket, strict=True)
        taken = sorted(
            (event if flags & RECEIVES else begun + 1, ticket)
            for event, begun, flags, ticket in rows
            if event or not flags & RECEIVES
        )
        self._positions = [position for position, _ in taken]
        self._tickets = list(accumulate((ticket for _, ticket in taken), max))

    def at(self, position: int) -> int:
        """Return the last ticket that it had taken at a position; 0: none."""
        at = bisect_right(self._positions, position)
        return self._tickets[at - 1] if at else 0
