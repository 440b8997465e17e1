"""The state of a channel in a cut: what was sent in it, and not received."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from replaydbg.distributed.cuts import Cut
from replaydbg.distributed.matching.matching import Matched
from replaydbg.distributed.matching.segments import SURE, UNSURE


class InFlight(NamedTuple):
    """Bytes of one send that were under way."""

    send: int
    """Its index; an open one counts on from those that ended."""
    receive: int | None
    """The index of the receive that took them later; None: nobody did."""
    offset: int
    """How many bytes of the send come before them."""
    taken_at: int
    """How many bytes of the receive come before them."""
    length: int
    certainty: int
    """SURE, AMBIGUOUS or UNSURE: whether they are those of this send."""


class ChannelHistory:
    """A channel of a group at any cut."""

    def __init__(self, found: Matched) -> None:
        """Take a matched channel."""
        self.found = found
        sends, receives = found.sends, found.receives
        self._processes = [member.process for member in sends.members]
        self._senders = [*sends.member, *(index for index, _ in sends.open)]
        self._begun = [*sends.begun, *(sends.members[index].transfers.begun[row] for index, row in sends.open)]
        is_stream = not found.channel.is_datagram  # a datagram can be lost, and overtake others
        self._is_in_order = is_stream and sends.is_chain and receives.is_chain and not sends.open
        self._receives = receives

    def is_sent(self, cut: Cut, send: int) -> bool:
        """Whether a send had begun."""
        return self._begun[send] < cut.get(self._processes[self._senders[send]], 0)

    def is_received(self, cut: Cut, receive: int) -> bool:
        """Whether a receive had ended."""
        member = self._receives.member[receive]
        return self._receives.event[receive] <= cut.get(self._processes[member], 0)

    def in_flight(self, cut: Cut) -> Iterator[InFlight]:
        """Yield what had been sent and not received, in the order in which it was received, what nobody took last."""
        segments = self.found.segments
        offsets, taken_at = self._offsets
        for at in range(self._first_not_received(cut), len(segments)):
            send, receive = segments.send[at], segments.receive[at]
            if not self.is_sent(cut, send):
                if self._is_in_order:
                    break
            elif not self.is_received(cut, receive):
                yield InFlight(send, receive, offsets[at], taken_at[at], segments.length[at], segments.certainty[at])
        for send, taken in self._never_received:
            if self.is_sent(cut, send):
                yield InFlight(send, None, taken, 0, self.found.sends.length[send] - taken, SURE)

    def parts_of(self, send: int) -> list[InFlight]:
        """Return all bytes of a send that were received at any time, in order."""
        segments = self.found.segments
        offsets, taken_at = self._offsets
        return [
            InFlight(send, segments.receive[at], offsets[at], taken_at[at], segments.length[at], segments.certainty[at])
            for at in self._segments.get(send, ())
        ]

    def has_received(self, cut: Cut) -> bool:
        """Whether anything was received."""
        return any(self.is_received(cut, receive) for receive in range(len(self._receives)))

    def is_unsure(self, cut: Cut) -> bool:
        """Whether something was received of which it is not known whether it was sent."""
        if self.found.early is not None and self.is_received(cut, self.found.segments.receive[self.found.early]):
            return True
        if self.found.channel.is_datagram and any(self.is_received(cut, each) for each in self._unknown):
            return True
        if self.found.contradiction is None:
            return False
        columns = zip(self.found.segments.receive, self.found.segments.certainty, strict=True)
        return any(certainty == UNSURE and self.is_received(cut, receive) for receive, certainty in columns)

    def unfinished(self, cut: Cut) -> list[int]:
        """Return sends that had begun and not ended: how many of their bytes were under way is not known."""
        sends = self.found.sends
        return [
            send
            for send in range(len(sends) + len(sends.open))
            if self.is_sent(cut, send)
            and (send >= len(sends) or sends.event[send] > cut[self._processes[sends.member[send]]])
        ]

    def _first_not_received(self, cut: Cut) -> int:
        """Return a segment before which all were received; in order, it is the first that was not."""
        if not self._is_in_order or not len(self._receives):
            return 0
        position = cut.get(self._processes[self._receives.member[0]], 0)
        count = bisect_left(self._receives.event, position + 1)
        return bisect_left(self.found.segments.receive, count)

    @cached_property
    def _segments(self) -> dict[int, list[int]]:
        """The segments of each send."""
        found: dict[int, list[int]] = {}
        for at, send in enumerate(self.found.segments.send):
            found.setdefault(send, []).append(at)
        return found

    @cached_property
    def _offsets(self) -> tuple[Sequence[int], Sequence[int]]:
        """For each segment, how many bytes of its send, and of its receive, come before it."""
        segments = self.found.segments
        return _before(segments.send, segments.length), _before(segments.receive, segments.length)

    @cached_property
    def _unknown(self) -> list[int]:
        """The receives of which no send is known."""
        known = set(self.found.segments.receive)
        return [receive for receive in range(len(self._receives)) if receive not in known]

    @cached_property
    def _never_received(self) -> list[tuple[int, int]]:
        """The sends of which a rest was never received, each with how much was."""
        segments, sends = self.found.segments, self.found.sends
        taken = dict.fromkeys(range(len(sends)), -1 if self.found.channel.is_datagram else 0)
        for send, length in zip(segments.send, segments.length, strict=True):
            if send in taken:
                taken[send] = max(taken[send], 0) + length
        if self.found.channel.is_datagram:
            # What a receiver has cut off of a datagram is gone; one can be empty.
            return [(send, 0) for send, count in taken.items() if count < 0]
        return [(send, count) for send, count in taken.items() if count < sends.length[send]]


def _before(moves: Sequence[int], lengths: Sequence[int]) -> Sequence[int]:
    """Return for each segment the bytes of its send, or receive, in the segments before it."""
    taken: dict[int, int] = {}
    found = array("Q")
    for move, length in zip(moves, lengths, strict=True):
        found.append(taken.get(move, 0))
        taken[move] = found[-1] + length
    return found
