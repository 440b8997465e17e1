"""The segments of a channel: which receive took which bytes of which send."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

SURE, AMBIGUOUS, UNSURE = 0, 1, 2
"""How certain a segment is: certain; one of several that fit as well; behind a contradiction."""


class Segment(NamedTuple):
    """Bytes that one receive took from one send."""

    send: int
    """Index of the send; an open one counts on from those that ended."""
    receive: int
    """Index of the receive."""
    first: int
    """Offset of the first byte in the direction of the channel; 0 for a datagram."""
    length: int
    certainty: int
    """SURE, AMBIGUOUS or UNSURE."""


class Segments:
    """Segments as columns, in the order of the receives' bytes."""

    def __init__(self) -> None:
        self.send, self.receive = array("I"), array("I")
        self.first, self.length = array("Q"), array("Q")
        self.certainty = bytearray()
        self.groups: dict[int, Sequence[int]] = {}
        """For an ambiguous segment, by its index: sends that could be in each other's place, its own among them."""

    def add(self, send: int, receive: int, first: int, length: int, certainty: int = SURE) -> None:
        """Add a segment."""
        self.send.append(send)
        self.receive.append(receive)
        self.first.append(first)
        self.length.append(length)
        self.certainty.append(certainty)

    def __len__(self) -> int:
        return len(self.certainty)

    def __getitem__(self, at: int) -> Segment:
        return Segment(self.send[at], self.receive[at], self.first[at], self.length[at], self.certainty[at])

    def of_receive(self, receive: int) -> list[int]:
        """Return the indexes of the segments that a receive took."""
        return list(positions(self.receive, receive))

    def of_send(self, send: int) -> list[int]:
        """Return the indexes of the segments of a send's bytes."""
        return list(positions(self.send, send))

    def in_group_of(self, send: int) -> list[int]:
        """Return the indexes of the ambiguous segments that a send could fit as well."""
        groups = {id(group): group for group in self.groups.values()}
        wanted = {key for key, group in groups.items() if send in group}
        return [at for at, group in self.groups.items() if id(group) in wanted]


def positions(column: Sequence[int], wanted: int) -> Iterator[int]:
    """Yield the indexes at which a column has a number."""
    at = -1
    while True:
        try:
            at = column.index(wanted, at + 1)
        except ValueError:
            return
        yield at


class Contradiction(NamedTuple):
    """A send and a receive that end at the same byte, with different bytes before it."""

    send: int
    receive: int
    first: int
    """Offset up to which both sides agree."""
    last: int
    """Offset at which they differ."""
