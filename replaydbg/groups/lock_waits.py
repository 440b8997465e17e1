"""Which processes could let a wait for a lock of a file, or for an eventfd, go on: only as far as that is certain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cached_property

from replaydbg.distributed.cuts import Cut
from replaydbg.distributed.descriptors import ChannelEnd
from replaydbg.distributed.edges import BareTransfer, bare_transfers
from replaydbg.distributed.releases import PART, SHARED
from replaydbg.distributed.wait_history import Wait
from replaydbg.groups.group_ends import EVENTFD, LOCK_OF_FILE, GroupEnds
from replaydbg.groups.opened_group import OpenedGroup


class LockWaits:
    """Knows which locks of files processes have in a cut, and what eventfds count."""

    def __init__(self, opened: OpenedGroup, ends: GroupEnds, has_ended: Callable[[int, Cut], bool]) -> None:
        """`has_ended` says whether a process had ended in a cut."""
        self._opened, self._ends, self._has_ended = opened, ends, has_ended

    # ---- locks of files ----

    @cached_property
    def _locks(self) -> dict[tuple[str, str], list[BareTransfer]]:
        """For each file, and kind of lock, what processes acquired and released."""
        found: defaultdict[tuple[str, str], list[BareTransfer]] = defaultdict(list)
        for row in bare_transfers(self._opened.matching.members, LOCK_OF_FILE):
            found[row.end.own, _family(row.end.peer)].append(row)
        return found

    def holders(self, process: int, wait: Wait, cut: Cut) -> set[int]:
        """Return the processes whose locks a process waits for: each has to release it. Empty: none is certain."""
        if not wait.lock:
            return set()
        wanted = self._opened.member(process).endpoints[wait.lock - 1]
        last: dict[int, BareTransfer] = {}
        for row in self._locks.get((wanted.own, _family(wanted.peer)), ()):
            position = cut.get(row.process, 0)
            if 0 < row.event <= position if row.is_receive else row.begun < position:
                last[row.process] = row
        return {
            each
            for each, row in last.items()
            if row.is_receive
            and not wanted.peer.endswith(PART)
            and not row.end.peer.endswith(PART)
            and not (wanted.peer.startswith(SHARED) and row.end.peer.startswith(SHARED))
            and self._excludes(process, wait, row, cut)
        }

    def _excludes(self, process: int, wait: Wait, row: BareTransfer, cut: Cut) -> bool:
        """Whether only the process of `row` can release that lock, and a wait is for it."""
        call = self._ends.histories[row.process].locked.get(row.event)
        end = next(iter(call.ends), None) if call is not None else None
        if self._has_ended(row.process, cut) or call is None or end is None:
            return False
        if call.is_of_process:  # it does not exclude itself
            return row.process != process and row.process in self._who_has(end, cut)
        return end not in wait.ends and self._who_has(end, cut) == {row.process}

    def _who_has(self, end: ChannelEnd, cut: Cut) -> set[int]:
        def has_ended(number: int) -> bool:
            return self._has_ended(number, cut)

        return {each for perhaps in (False, True) for each in self._ends.holders(end, cut, has_ended, perhaps=perhaps)}

    # ---- eventfds ----

    def is_eventfd(self, end: ChannelEnd | None) -> bool:
        """Whether an end is known to be an eventfd."""
        endpoint = self._ends.endpoint(end) if end is not None else None
        return endpoint is not None and endpoint.kind == EVENTFD

    def writers(self, end: ChannelEnd, cut: Cut) -> set[int]:
        """Return the processes that could write to an eventfd with nothing to read; empty: that is not certain."""
        endpoint = self._ends.endpoint(end)
        if endpoint is None or self._count(end, cut) != 0 or self._is_written(endpoint.own, cut):
            return set()
        for member in self._opened.matching.members:
            if any(member.endpoints[number - 1].own == endpoint.own for _, number in member.transfers.passed):
                return set()  # whoever got it with a message can write to it, too
        found = self._who_has(end, cut)
        return set() if 0 in found else found

    def _is_written(self, own: str, cut: Cut) -> bool:
        """Whether a write had begun, and not ended: its count may be there."""
        for row in bare_transfers(self._opened.matching.members, EVENTFD):
            position = cut.get(row.process, 0)
            if row.end.own == own and not row.is_receive and row.begun < position and not 0 < row.event <= position:
                return True
        return False

    def _count(self, end: ChannelEnd, cut: Cut) -> int | None:
        """Return the counter of an eventfd in a cut; None: not known."""
        total = None
        for process, history in self._ends.histories.items():
            for event, change in history.eventfds.changes.get(end, ()):
                is_own = event >= self._opened.member(process).branch  # what it did before its fork is its parent's
                if not is_own or event > cut.get(process, 0):
                    continue
                if change is None:
                    return None
                total = change + (total or 0)
        return total if self._is_made(end, cut) else None

    def _is_made(self, end: ChannelEnd, cut: Cut) -> bool:
        """Whether it is known with which count it was made."""
        history = self._ends.histories.get(end.process)
        counts = history.eventfds.changes.get(end, ()) if history is not None else ()
        return any(event == end.event <= cut.get(end.process, 0) for event, _ in counts)


def _family(peer: str) -> str:
    """Return which locks exclude one: `flock` or `lockf`."""
    return peer.split(" ")[1] if " " in peer else ""
