"""Find an order of sends and of receives in which both sides of a channel carry the same bytes.

Used where tickets alone are wrong: a thread was preempted between its call and its ticket. Orders that deviate little
from that of the tickets are tried first (limited discrepancy search, Harvey and Ginsberg, 1995).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from replaydbg.distributed.matching.chains import Chains
from replaydbg.distributed.matching.digests import PRIME, Powers

MOST_DEVIATIONS = 4
"""How often an order may deviate from that of the tickets before both sides agree again."""

MOST_STEPS = 20_000
"""Steps of one search, after which it gives up."""

MOST_IN_ALL = 2_000_000
"""Steps of all searches in a group: some seconds."""

UNKNOWN = -1
"""The digest of bytes that were not seen, such as those of sendfile()."""


class Block(NamedTuple):
    """Sends and receives that begin at the same byte, end at the same byte, and carry the same bytes."""

    sends: list[int]
    receives: list[int]


class _Choice:
    """One step of the search: the transfers that could be next, and the state before it."""

    __slots__ = ("ahead", "deviations", "is_send", "next", "options", "received", "sent")

    def __init__(
        self, is_send: bool, options: list[int], deviations: int, ahead: int, sent: int, received: int
    ) -> None:
        self.is_send = is_send
        self.options = options
        self.next = 0
        self.deviations = deviations
        self.ahead = ahead
        """Number of bytes sent that are not received yet; negative: the other way round."""
        self.sent, self.received = sent, received
        """The digests of both sides since they agreed."""


class Effort:
    """The steps that are left for all searches in a group."""

    def __init__(self) -> None:
        self.left = MOST_IN_ALL


class OrderSearch:
    """Searches one channel."""

    def __init__(self, sends: Chains, receives: Chains, effort: Effort) -> None:
        self._sends, self._receives = sends, receives
        self._powers = Powers()
        self._steps = 0
        self._effort = effort
        # Each step looks at all chains.
        self._cost = 1 + (len(sends.chains) + len(receives.chains)) // 16
        self.last: Block | None = None
        """After a search without a result: an order of the rest in which neither side ends where the other does."""

    def find(self, sent: Sequence[int], received: Sequence[int], beyond: int) -> list[Block]:
        """Return blocks that lead at least `beyond` bytes further; an empty list: none was found.

        `sent` and `received` are the positions in the chains where both sides agree last.
        """
        self._steps = min(MOST_STEPS, self._effort.left)
        self.last = None
        for most in range(MOST_DEVIATIONS + 1):
            before = self._steps
            found = self._find(list(sent), list(received), beyond, most)
            self._effort.left -= before - self._steps
            if found or self._steps <= 0:
                return found
        return []

    def _find(self, sent: list[int], received: list[int], beyond: int, most: int) -> list[Block]:
        choices = [_Choice(True, self._sends.available(sent), 0, 0, 0, 0)]
        while choices:
            choice = choices[-1]
            if choice.next:  # take back what was tried
                self._move(choice, sent, received, -1)
            cost = choice.deviations + (1 if choice.next else 0)
            if choice.next == len(choice.options) or cost > most or self._steps <= 0:
                choices.pop()
                continue
            choice.next += 1
            self._move(choice, sent, received, 1)
            self._steps -= self._cost
            following = self._follow(choice, cost, choices, sent, received)
            if following is None:
                continue
            if not following.options and following.ahead and self.last is None:
                self.last = _joined(_blocks([*choices, following]))
            if not following.ahead:
                blocks = _blocks([*choices, following])
                if sum(self._sends.moves.length[at] for block in blocks for at in block.sends) > beyond:
                    return blocks
            choices.append(following)
        return []

    def _move(self, choice: _Choice, sent: list[int], received: list[int], by: int) -> None:
        at = choice.options[choice.next - 1]
        if choice.is_send:
            sent[self._sends.chain[at]] += by
        else:
            received[self._receives.chain[at]] += by

    def _follow(
        self, choice: _Choice, cost: int, choices: list[_Choice], sent: list[int], received: list[int]
    ) -> _Choice | None:
        """Return the next step after a choice; None: it is impossible."""
        at = choice.options[choice.next - 1]
        side = self._sends if choice.is_send else self._receives
        length, digest = side.moves.length[at], side.moves.digest[at]
        if choice.is_send:
            ahead, other = choice.ahead + length, choice.received
            one = self._joined(choice.sent, length, digest)
        else:
            ahead, one = choice.ahead - length, choice.sent
            other = self._joined(choice.received, length, digest)
        if choice.ahead and self._is_too_early(choice, at, choices):
            return None
        if ahead == 0:
            if one != other and UNKNOWN not in (one, other):
                return None
            return _Choice(True, self._sends.available(sent), cost, 0, 0, 0)
        if ahead < 0:
            return _Choice(True, self._sends.available(sent), cost, ahead, one, other)
        options = self._receives.available(received)
        if not choice.is_send and len(options) > 1:
            # A process that has read the beginning of a message reads its rest.
            chain = self._receives.chain[at]
            options.sort(key=lambda each: self._receives.chain[each] != chain)
        return _Choice(False, options, cost, ahead, one, other)

    def _joined(self, before: int, length: int, digest: int) -> int:
        """Return the digest of what one side moved; UNKNOWN if any of the bytes were not seen."""
        if before == UNKNOWN or not digest:
            return UNKNOWN
        return (before * self._powers[length] + digest) % PRIME

    def _is_too_early(self, choice: _Choice, at: int, choices: list[_Choice]) -> bool:
        """Whether a receive would take bytes of a send that began after it."""
        before = next((each for each in reversed(choices[:-1]) if each.is_send != choice.is_send), None)
        if before is None:
            return False
        last = before.options[before.next - 1]
        send, receive = (at, last) if choice.is_send else (last, at)
        ticket, taken = self._sends.moves.ticket[send], self._receives.moves.ticket[receive]
        if not ticket or not taken or ticket < taken:
            return False
        # The receive may end before the last send.
        rest = choice.ahead - self._receives.moves.length[receive]
        return choice.is_send or rest < self._sends.moves.length[send]


def _joined(blocks: list[Block]) -> Block:
    return Block([at for each in blocks for at in each.sends], [at for each in blocks for at in each.receives])


def _blocks(choices: list[_Choice]) -> list[Block]:
    """Return what was chosen; the last of `choices` is a state alone."""
    found: list[Block] = []
    for choice in choices[:-1]:
        if not choice.ahead:
            found.append(Block([], []))
        at = choice.options[choice.next - 1]
        (found[-1].sends if choice.is_send else found[-1].receives).append(at)
    return found
