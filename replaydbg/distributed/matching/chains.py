"""The order of transfers of several processes in one direction of a channel, as far as it is known."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence

from replaydbg.distributed.matching.bounds import Bounds
from replaydbg.distributed.matching.columns import Moves

MOST_THREADS = 100
"""Transfers of one process that may go on at once, in one direction of a channel."""


class Chains:
    """Sends or receives as chains: in each the order is known. Between chains, two tickets bound each transfer.

    `first` and `last` are such that A is known to be before B if `last[A] <= first[B]`.
    """

    def __init__(self, moves: Moves, first: Sequence[int], last: Sequence[int]) -> None:
        self.moves = moves
        self.first, self.last = first, last
        self.is_known = True
        """Whether the orders in the chains are known; otherwise all are in one chain, as their tickets are."""
        self.chains: list[array[int]] = []
        """The indexes of the transfers of each chain, in order."""
        self.chain = array("I", bytes(4 * len(moves)))
        """For each transfer, the index of its chain."""
        if moves.is_chain or not self._split():
            self.chains = [array("I", range(len(moves)))]
            self.is_known = moves.is_chain
        for number, chain in enumerate(self.chains):
            for at in chain:
                self.chain[at] = number

    def _split(self) -> bool:
        """Find the chains; False: there are too many."""
        first, last = self.first, self.last
        of_member: dict[int, list[array[int]]] = {}
        for at, member in enumerate(self.moves.member):
            chains = of_member.setdefault(member, [])
            for chain in chains:
                if last[chain[-1]] <= first[at]:
                    chain.append(at)
                    break
            else:
                if len(chains) == MOST_THREADS:
                    return False
                chains.append(array("I", [at]))
                self.chains.append(chains[-1])
        return True

    def positions(self, used: Sequence[int]) -> list[int]:
        """Return how many of each chain come before the first one that is not used."""
        # What is used of a chain is its beginning.
        return [bisect_left(range(len(chain)), True, key=lambda at: not used[chain[at]]) for chain in self.chains]

    def available(self, positions: Sequence[int]) -> list[int]:
        """Return the transfers that may be next, in the order of their tickets."""
        first, last = self.first, self.last
        nexts = [chain[at] for chain, at in zip(self.chains, positions, strict=True) if at < len(chain)]
        if len(nexts) < 2:
            return nexts
        bound = min(last[at] for at in nexts)
        # A transfer is never before itself, also if its bounds are forged.
        return sorted(at for at in nexts if first[at] < bound or last[at] == bound)


def chains_of_sends(moves: Moves, bounds: Callable[[int], Bounds]) -> Chains:
    """Return the chains of sends; `bounds` returns those of a member by its index."""
    if moves.is_chain:
        return Chains(moves, range(len(moves)), range(len(moves)))
    ended = [bounds(member).ended_by(event) for member, event in zip(moves.member, moves.event, strict=True)]
    return Chains(moves, moves.ticket, ended)


def chains_of_receives(moves: Moves, bounds: Callable[[int], Bounds]) -> Chains:
    """Return the chains of receives."""
    if moves.is_chain:
        return Chains(moves, range(len(moves)), range(len(moves)))
    began = [bounds(member).began_after(begun) for member, begun in zip(moves.member, moves.begun, strict=True)]
    return Chains(moves, began, moves.ticket)
