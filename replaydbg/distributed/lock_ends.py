"""Find what ended a lock of a file that nobody released: the last close of its open file, or the end of a process.

A lock by `flock()` belongs to an open file, which several descriptors and processes can have: it ends when all of them
are closed. One by `lockf()` belongs to its process, and ends with it. Which descriptors a process had is in its event
log alone, so `releases.py` does not know these ends.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from replaydbg.distributed.cuts import Requirement
from replaydbg.distributed.descriptors import ChannelEnd
from replaydbg.distributed.edges import BareTransfer
from replaydbg.distributed.matching.columns import Member
from replaydbg.distributed.releases import is_flock, is_part, is_shared_lock, lock_uses, may_be_at_once


class Ending(NamedTuple):
    """The close of a descriptor, or the end of a process."""

    process: int
    event: int
    """The first event of the process that ended after it began."""
    ticket: int
    """The ticket that it took, or the last one before it."""


class LockCall(NamedTuple):
    """A call that acquired or released a lock of a file; a close of one descriptor is none."""

    ends: frozenset[ChannelEnd]
    """Its open file, or the files that `closerange()` closed; empty: not known."""
    is_of_process: bool
    """Whether the lock belongs to the process, not to the open file."""
    closes: bool = False
    """Whether it is a call of `closerange()`: it may have closed no descriptor of the file."""


class LockEnds:
    """Yields what acquisitions need because a lock was there before that no call released."""

    def __init__(
        self,
        members: Sequence[Member],
        calls: Mapping[int, Mapping[int, LockCall]],
        closings: Callable[[ChannelEnd], Iterable[Ending]],
        end_of: Callable[[int], Ending],
    ) -> None:
        """`calls` has those of each process, by event.

        `closings` returns when each process had closed an open file, and `end_of` when a process has ended.
        """
        self._members, self._calls, self._closings, self._end_of = members, calls, closings, end_of

    def requirements(self) -> Iterator[Requirement]:
        """Yield them, for all files."""
        for rows in lock_uses(self._members):
            locks = {False: _Locks(self), True: _Locks(self)}
            for row in rows:
                yield from locks[is_flock(row)].use(row, self._calls.get(row.process, {}).get(row.event))

    def closed_before(self, end: ChannelEnd, ticket: int) -> list[Ending]:
        """Return when each process had closed an open file; empty: one had it later, so that did not end the lock."""
        found = list(self._closings(end))
        return found if all(each.ticket < ticket for each in found) else []

    def ended_before(self, process: int, ticket: int) -> list[Ending]:
        """Return when a process had ended; empty: it was still there."""
        found = self._end_of(process)
        return [found] if found.ticket < ticket else []


class Clock:
    """The latest ticket that a process had taken by each of its events."""

    def __init__(self, member: Member) -> None:
        """Take the transfers of a process."""
        columns = member.transfers
        ended = sorted((event, ticket) for event, ticket in zip(columns.event, columns.ticket, strict=True) if event)
        self._events = array("Q", (event for event, _ in ended))
        self._latest = array("Q", accumulate((ticket for _, ticket in ended), max))

    def before(self, event: int) -> int:
        """Return the latest ticket taken before an event ended, its own excluded; 0: there is none."""
        at = bisect_right(self._events, event - 1)
        return self._latest[at - 1] if at else 0


class _Locks:
    """The locks of one file, of one kind: those that are there after each use, and what ended the others."""

    def __init__(self, ends: LockEnds) -> None:
        self._ends = ends
        self._of_files: dict[ChannelEnd, BareTransfer] = {}
        """By open file, the acquisition."""
        self._of_processes: dict[int, BareTransfer] = {}
        """By process; of several parts of the file, the lock that excludes most."""
        self._used: defaultdict[int, set[ChannelEnd]] = defaultdict(set)
        """The open files of the file by which each process acquired locks of its own."""
        self._ended: dict[bool, dict[int, int]] = {False: {}, True: {}}
        """Of each process the last event that ended a lock: `False` has exclusive locks alone, `True` all of them."""
        self._needed: dict[tuple[int, int], int] = {}

    def use(self, row: BareTransfer, call: LockCall | None) -> Iterator[Requirement]:
        """Take the next use in the order of tickets, and yield what it needs."""
        if not row.is_receive:
            self._release(row, call)
            return
        for ended, is_shared in self._ended_for(row, call):
            for last in (self._ended[True],) if is_shared else self._ended.values():
                last[ended.process] = max(ended.event, last.get(ended.process, 0))
        for process, event in self._ended[not is_shared_lock(row)].items():
            pair = process, row.process
            if process != row.process and self._needed.get(pair, 0) < event:
                self._needed[pair] = event  # later events of the process need what its earlier ones do
                yield Requirement(process, row.process, (event,), (row.event,), is_certain=False)
        if call is not None:
            self._acquire(row, call)

    def _ended_for(self, row: BareTransfer, call: LockCall | None) -> Iterator[tuple[Ending, bool]]:
        """Yield what had ended the locks that an acquisition excludes, and whether these were shared."""
        own = call.ends if call is not None and not call.is_of_process else frozenset()
        found: list[tuple[BareTransfer, list[Ending]]] = []
        for end, held in list(self._of_files.items()):
            if end not in own and not may_be_at_once(held, row):
                endings = self._ends.closed_before(end, row.ticket)
                found.append((held, endings))
                if endings and not is_part(held, row):  # otherwise it may be there
                    del self._of_files[end]
        for process, held in list(self._of_processes.items()):
            if process != row.process and not may_be_at_once(held, row):
                endings = self._ends.ended_before(process, row.ticket)
                found.append((held, endings))
                if endings and not is_part(held, row):
                    del self._of_processes[process]
        for held, endings in found:
            for each in endings:
                yield each, is_shared_lock(held)

    def _acquire(self, row: BareTransfer, call: LockCall) -> None:
        if not call.is_of_process:
            self._of_files.update(dict.fromkeys(call.ends, row))
            return
        held = self._of_processes.get(row.process)
        self._used[row.process] |= call.ends
        if held is None or not is_part(row) or is_shared_lock(held):
            self._of_processes[row.process] = row

    def _release(self, row: BareTransfer, call: LockCall | None) -> None:
        if call is None or (call.closes and call.ends & self._used[row.process]):
            self._of_processes.pop(row.process, None)
        elif call.closes or is_part(row):
            return  # the lock may be there
        elif call.is_of_process:
            self._of_processes.pop(row.process, None)
        else:
            for end in call.ends:
                self._of_files.pop(end, None)
