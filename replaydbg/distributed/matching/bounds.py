"""Tickets between which the transfers of a process moved their bytes."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from replaydbg.distributed.matching.columns import NEVER, Member


class Bounds:
    """For the transfers of one process, tickets between which the kernel moved their bytes.

    A send did not begin before its own ticket, and had ended before any transfer of the process took a ticket that
    began after it. A receive had ended at its own ticket, and began after the tickets of all that had ended before.
    """

    def __init__(self, member: Member, born: int, children: Sequence[tuple[int, int]]) -> None:
        """`born`: a ticket before its fork; `children`: for each child, the event of its fork and a ticket after it."""
        columns = member.transfers
        self._begun, ticket, event = columns.begun, columns.ticket, columns.event
        self._after = _least_from(ticket)
        ended = sorted((row for row in range(len(event)) if event[row]), key=event.__getitem__)
        self._ended = array("Q", map(event.__getitem__, ended))
        self._before = [born, *(max(born, each) for each in accumulate(map(ticket.__getitem__, ended), max))]
        forks = sorted(children)
        self._forks = [fork for fork, _ in forks]
        self._children = _least_from([first for _, first in forks])

    def ended_by(self, event: int) -> int:
        """Return a ticket before which an event had ended."""
        return min(
            self._after[bisect_left(self._begun, event)],
            self._children[bisect_left(self._forks, event)],
        )

    def began_after(self, begun: int) -> int:
        """Return a ticket after which a transfer began, given the number of events before it."""
        return self._before[bisect_left(self._ended, begun + 1)]


def _least_from(tickets: Sequence[int]) -> list[int]:
    """Return for each place the least ticket from there on, and NEVER at the end."""
    found = list(accumulate((each or NEVER for each in reversed(tickets)), min, initial=NEVER))
    found.reverse()
    return found


class GroupBounds:
    """The bounds of all members of a group, each computed when it is asked for."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members
        self._known: dict[int, Bounds] = {}
        self._index = {member.process: index for index, member in enumerate(members)}
        self._firsts: dict[int, list[tuple[int, int]]] | None = None

    def __call__(self, index: int) -> Bounds:
        """Return those of a member by its index."""
        found = self._known.get(index)
        if found is None:
            # A parent has a lower number than its children: so this ends, whatever a recording claims.
            line = [index]
            while (parent := self._parent(line[-1])) is not None and parent not in self._known:
                line.append(parent)
            for each in reversed(line):
                found = self._known[each] = self._compute(each)
        assert found is not None, index
        return found

    def _parent(self, index: int) -> int | None:
        member = self._members[index]
        return self._index.get(member.parent) if 0 < member.parent < member.process else None

    def _compute(self, index: int) -> Bounds:
        member = self._members[index]
        parent = self._parent(index)
        born = self._known[parent].began_after(member.branch) if parent is not None else 0
        return Bounds(member, born, self._children().get(member.process, []))

    def _children(self) -> dict[int, list[tuple[int, int]]]:
        """Return for each process the forks of its children, each with the first ticket of the child."""
        if self._firsts is None:
            self._firsts = {}
            for index, member in enumerate(self._members):
                if self._parent(index) is not None:
                    first = min(filter(None, member.transfers.ticket), default=NEVER)
                    self._firsts.setdefault(member.parent, []).append((member.branch, first))
        return self._firsts
