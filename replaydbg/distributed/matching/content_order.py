"""Find the order of sends from the bytes that were received: each send must be what comes next.

The recording of a receiver has its bytes, that of a sender only their digests. Reading the bytes takes longer than all
of the matching, so they are asked for only where the order of the tickets is wrong.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

from replaydbg.distributed.matching.chains import Chains
from replaydbg.distributed.matching.columns import NEVER, Moves
from replaydbg.distributed.matching.digests import PRIME, Powers
from replaydbg.distributed.matching.order_search import Block, Effort
from replaydbg.events.transfers import DIGEST_BASE

Contents = Callable[[Moves], dict[int, bytes]]
"""Returns the bytes that receives took, by their index, as far as they are recorded."""

MOST_BYTES = 8 << 20
"""Limit on the bytes searched between two places at which both sides agree."""

MOST_STEPS = 200_000
"""Steps from one such place to the next."""


class _Step(NamedTuple):
    """A send or a receive that is taken to be the next one."""

    is_send: bool
    move: int


class ContentOrder:
    """Finds orders of sends, and of receives, by the bytes that were received."""

    def __init__(self, sends: Chains, receives: Chains, contents: Contents, effort: Effort) -> None:
        self._sends, self._receives = sends, receives
        self._contents = contents
        self._effort = effort
        self._known: dict[int, bytes] | None = None
        self._powers = Powers()
        # Of the bytes since both sides agreed:
        self._digests = array("Q")
        """The digest up to each byte."""
        self._ends: list[int] = []
        """Where each receive ends."""
        self._takers: list[int] = []
        """The receives."""

    def find(self, sent: Sequence[int], received: Sequence[int]) -> Block | None:
        """Return the sends and receives up to the next place at which both sides agree; None: it is not found.

        `sent` and `received` are the positions in the chains where both sides agree last.
        """
        if self._known is None:
            self._known = self._contents(self._receives.moves)
        self._digests, self._ends, self._takers = array("Q", [0]), [], []
        sent, received = list(sent), list(received)
        chosen: list[_Step] = []
        options = [self._options(sent, received, 0)]
        at = 0
        for _ in range(MOST_STEPS):
            self._effort.left -= 1
            if not options or self._effort.left <= 0:
                return None
            if not options[-1]:
                options.pop()
                if chosen:
                    at -= self._take_back(chosen.pop(), sent, received)
                continue
            step = options[-1].pop()
            chosen.append(step)
            if step.is_send:
                sent[self._sends.chain[step.move]] += 1
                at += self._sends.moves.length[step.move]
                taken = bisect_right(self._ends, at)
                if taken and self._ends[taken - 1] == at:
                    return Block([each.move for each in chosen if each.is_send], self._takers[:taken])
            else:
                received[self._receives.chain[step.move]] += 1
                self._add(step.move)
            options.append(self._options(sent, received, at))
        return None

    def _take_back(self, step: _Step, sent: list[int], received: list[int]) -> int:
        """Undo a step; return by how many bytes of sends that goes back."""
        if step.is_send:
            sent[self._sends.chain[step.move]] -= 1
            return self._sends.moves.length[step.move]
        received[self._receives.chain[step.move]] -= 1
        self._ends.pop()
        self._takers.pop()
        del self._digests[(self._ends[-1] if self._ends else 0) + 1 :]
        return 0

    def _options(self, sent: Sequence[int], received: Sequence[int], at: int) -> list[_Step]:
        """Return what can be next, the most likely last: sends whose bytes are there, or a receive."""
        there = len(self._digests) - 1
        available = self._sends.available(sent)
        found = [_Step(True, send) for send in available if self._is_next(send, at, there)]
        if there < MOST_BYTES and any(at + self._sends.moves.length[send] > there for send in available):
            found += [_Step(False, receive) for receive in self._receives.available(received) if self._has(receive)]
        found.reverse()
        return found

    def _is_next(self, send: int, at: int, there: int) -> bool:
        """Whether the bytes from `at` on are those of a send."""
        length, digest = self._sends.moves.length[send], self._sends.moves.digest[send]
        if not digest or at + length > there:
            return False
        taker = self._takers[bisect_right(self._ends, at)]
        if self._sends.moves.ticket[send] >= (self._receives.moves.ticket[taker] or NEVER):
            return False
        before, after = self._digests[at], self._digests[at + length]
        return (after - before * self._powers[length]) % PRIME == digest

    def _has(self, receive: int) -> bool:
        """Whether all bytes of a receive are recorded."""
        data = self._known.get(receive) if self._known is not None else None
        return data is not None and len(data) == self._receives.moves.length[receive]

    def _add(self, receive: int) -> None:
        """Add the bytes of a receive."""
        assert self._known is not None, receive
        digest = self._digests[-1]
        for byte in self._known[receive]:
            digest = (digest * DIGEST_BASE + byte + 1) % PRIME
            self._digests.append(digest)
        self._takers.append(receive)
        self._ends.append(len(self._digests) - 1)


def no_contents(receives: Moves) -> dict[int, bytes]:
    """Return nothing: no bytes are known."""
    return {}
