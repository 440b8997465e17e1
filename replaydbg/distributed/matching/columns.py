"""The transfers of one process as columns, and those of one direction of a channel gathered from them."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import compress, islice
from operator import le
from typing import NamedTuple

from replaydbg.events.transfers import Endpoint
from replaydbg.log.transfers import PARTLY_KNOWN, TransferColumns

NEVER = 1 << 64
"""A ticket after all others."""


class Member(NamedTuple):
    """One recorded process of a group."""

    process: int
    """Its number in the group."""
    endpoints: Sequence[Endpoint]
    transfers: TransferColumns
    branch: int = 0
    """The number of the fork at which its recording leaves its parent's; 0: it was not forked."""
    parent: int = 0
    """The number of that parent."""
    pid: int = 0
    """Its process id; 0: unknown."""
    events: int = 0
    """Number of its events, those before its fork included."""


_PARTLY_KNOWN = bytes(bool(flags & PARTLY_KNOWN) for flags in range(256))


class Part(NamedTuple):
    """The transfers of one process in one direction of a channel."""

    member: int
    """Index of the process among the members."""
    rows: Sequence[int]
    """Its transfers, in the order in which they began."""


class Moves:
    """The sends or the receives in one direction of a channel, as columns in the order of their tickets.

    Those that moved nothing are left out, and open ones are apart: how much they moved is not known.
    """

    def __init__(self, members: Sequence[Member], parts: Sequence[Part], *, keep_empty: bool = False) -> None:
        """Gather the columns; `keep_empty`: datagrams may be empty."""
        self.members = members
        self.parts = parts
        self.open: list[tuple[int, int]] = []
        """Index of the member and row of each transfer that had not ended."""
        self.member = array("H")
        """For each, the index of its process among the members."""
        self.row = array("I")
        """The row in its process."""
        self.is_partly_known = bytearray()
        """For each, whether its length is a lower bound."""
        self.event, self.begun, self.ticket = array("Q"), array("Q"), array("Q")
        self.length, self.digest = array("Q"), array("Q")
        for part in parts:
            self._gather(part, keep_empty)
        self.is_chain = len({part.member for part in parts}) <= 1 and all(
            map(le, self.event, islice(self.begun, 1, None))
        )
        """Whether each is known to have ended before the next one began: one process, one thread at a time."""
        if not self.is_chain:
            self._sort()

    def _gather(self, part: Part, keep_empty: bool) -> None:
        columns = self.members[part.member].transfers
        rows: Sequence[int] = part.rows
        event = array("Q", map(columns.event.__getitem__, rows))
        if 0 in event:
            self.open += [(part.member, row) for row, number in zip(rows, event, strict=True) if not number]
            rows = array("I", compress(rows, event))
            event = array("Q", filter(None, event))
        length = array("Q", map(columns.length.__getitem__, rows))
        if 0 in length and not keep_empty:
            rows, event = array("I", compress(rows, length)), array("Q", compress(event, length))
            length = array("Q", filter(None, length))
        self.member.extend(array("H", [part.member]) * len(rows))
        self.row.extend(rows)
        self.event.extend(event)
        self.length.extend(length)
        for name in ("begun", "ticket", "digest"):
            getattr(self, name).extend(map(getattr(columns, name).__getitem__, rows))
        flags = bytes(map(columns.flags.__getitem__, rows))
        self.is_partly_known += flags.translate(_PARTLY_KNOWN)

    def _sort(self) -> None:
        """Order the transfers by their tickets: there are several processes, or threads."""
        order = sorted(range(len(self.row)), key=self.ticket.__getitem__)
        for name in ("member", "row", "event", "begun", "ticket", "length", "digest"):
            column = getattr(self, name)
            setattr(self, name, array(column.typecode, map(column.__getitem__, order)))
        self.is_partly_known = bytearray(map(self.is_partly_known.__getitem__, order))

    def __len__(self) -> int:
        return len(self.row)

    @property
    def sources(self) -> list[int]:
        """Sends that may have made more bytes than recorded; indexes of open sends follow those of ended ones."""
        partly = [at for at, is_partly in enumerate(self.is_partly_known) if is_partly]
        return partly + list(range(len(self), len(self) + len(self.open)))

    def place(self, index: int) -> tuple[int, int]:
        """Return the index of the member, and the row, of a transfer; open ones count on from those that ended."""
        return (self.member[index], self.row[index]) if index < len(self) else self.open[index - len(self)]

    @property
    def total(self) -> int:
        """Number of bytes of those that ended."""
        return sum(self.length)

    @property
    def processes(self) -> list[int]:
        """The numbers of the processes, in ascending order."""
        return sorted({self.members[part.member].process for part in self.parts})

    def find(self, member: int, row: int) -> int | None:
        """Return the index of a transfer; None: it is not among them."""
        if self.is_chain:  # the rows are in order
            if not self.parts or self.parts[0].member != member:
                return None
            at = bisect_left(self.row, row)
            return at if at < len(self.row) and self.row[at] == row else None
        at = -1
        while True:
            try:
                at = self.row.index(row, at + 1)
            except ValueError:
                return None
            if self.member[at] == member:
                return at
