"""Find consistent cuts: global states of a group that could have existed.

A cut has a position for each process, the number of its events that are in it; 0: it has not begun. It is consistent if
everything that was received in it was also sent in it (Chandy and Lamport, Distributed Snapshots, ACM TOCS 3, 1985). A
send is in it from the first event that ended after it began: its bytes can be received before it ends.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

from replaydbg.distributed.happens_before import ProgramStart, edges_without_bytes
from replaydbg.distributed.matching.columns import NEVER, Member
from replaydbg.distributed.matching.matching import GroupMatching, Matched
from replaydbg.distributed.matching.segments import AMBIGUOUS

Cut = Mapping[int, int]
"""For each process its position: how many of its events are in the cut."""


MOST_EVENTS = 1 << 63
"""Numbers of events are below."""


class Requirement(NamedTuple):
    """Events of a process, each of which can be in a cut only if an event of another process is in it."""

    source: int
    """The process that must have gone so far."""
    target: int
    events: Sequence[int]
    """Events of the source."""
    dependents: Sequence[int]
    """For each of these, the event of the target that needs it."""
    is_certain: bool = True
    """Whether it is certain that they happened in this order."""


def last_position(member: Member) -> int:
    """Return the last position of a process: a call that never ended counts as one event more."""
    return member.events + any(not event for event in member.transfers.event)


class CutFinder:
    """Finds the latest consistent cut at or before given positions: it is unique."""

    def __init__(self, last: Mapping[int, int], requirements: Iterable[Requirement], first: Cut | None = None) -> None:
        """Build the tables.

        `last` has each process with its last position, and `first` the least one of those that begin later than at 1: a
        forked process shares the events before its fork with its parent.
        """
        self.last = last
        self._first = first or {}
        pairs: defaultdict[tuple[int, int], list[Requirement]] = defaultdict(list)
        for each in requirements:
            if each.source != each.target and each.source in last and each.target in last:
                pairs[each.source, each.target].append(each)
        self._limits: defaultdict[int, dict[int, tuple[array[int], array[int]]]] = defaultdict(dict)
        for (source, target), needed in pairs.items():
            self._limits[source][target] = _limits(needed)

    def latest(self, wanted: Cut, allowed: Mapping[int, Sequence[int]] | None = None) -> dict[int, int]:
        """Return the latest consistent cut at or before the positions `wanted`; those that are missing: the last ones.

        `allowed` restricts the positions of processes, each to an ascending sequence and 0.
        """
        allowed = allowed or {}
        cut = {}
        for process, last in self.last.items():
            cut[process] = self._at_or_before(process, min(wanted.get(process, last), last), allowed)
        waiting = deque(cut)
        while waiting:
            source = waiting.popleft()
            for target, (events, least) in self._limits.get(source, {}).items():
                at = bisect_right(events, cut[source])
                if at < len(events) and least[at] <= cut[target]:
                    cut[target] = self._at_or_before(target, least[at] - 1, allowed)
                    waiting.append(target)
        return cut

    def is_consistent(self, cut: Cut) -> bool:
        """Whether a cut is consistent, and each position is one of its process."""
        return all(each in cut for each in self.last) and self.latest(cut) == dict(cut)

    def _at_or_before(self, process: int, position: int, allowed: Mapping[int, Sequence[int]]) -> int:
        if process in allowed:
            at = bisect_right(allowed[process], position)
            position = allowed[process][at - 1] if at else 0
        return position if position >= self._first.get(process, 1) else 0


def _limits(requirements: Sequence[Requirement]) -> tuple[array[int], array[int]]:
    """Return the events of the source in order, and for each the first dependent of it or of any later one."""
    events, dependents = array("Q"), array("Q")
    for each in requirements:
        events.extend(each.events)
        dependents.extend(each.dependents)
    order = sorted(range(len(events)), key=events.__getitem__)
    least = list(accumulate((dependents[at] for at in reversed(order)), min))
    return array("Q", map(events.__getitem__, order)), array("Q", reversed(least))


def finder_of(group: GroupMatching, starts: Sequence[ProgramStart] = (), more: Iterable[Requirement] = ()) -> CutFinder:
    """Return the finder of a group's cuts, which also meet the requirements `more`: matches all channels."""
    last = {member.process: last_position(member) for member in group.members}
    first = {member.process: member.branch for member in group.members if member.branch}
    return CutFinder(last, chain(requirements(group, starts), more), first)


def requirements(group: GroupMatching, starts: Sequence[ProgramStart] = ()) -> Iterator[Requirement]:
    """Yield what a consistent cut of a group needs.

    Where it is not certain which of several sends, or releases of a semaphore, was the one, all of them are needed: so
    a cut is consistent whichever it was.
    """
    for edge in edges_without_bytes(group.members, starts):
        if edge.event >= MOST_EVENTS or edge.to_event >= MOST_EVENTS:
            continue  # a forged recording
        yield Requirement(edge.process, edge.to_process, (edge.event,), (edge.to_event,))
    for channel in group.channels:
        yield from _of_messages(group.match(channel))


def _of_messages(found: Matched) -> Iterator[Requirement]:
    pairs: defaultdict[tuple[int, int], tuple[array[int], array[int]]] = defaultdict(lambda: (array("Q"), array("Q")))
    sends, receives, segments = found.sends, found.receives, found.segments
    begun = [*sends.begun, *(sends.members[index].transfers.begun[row] for index, row in sends.open)]
    senders = [*sends.member, *(index for index, _ in sends.open)]
    members = sends.members
    for send, receive in zip(segments.send, segments.receive, strict=True):
        events, dependents = pairs[senders[send], receives.member[receive]]
        events.append(min(begun[send], MOST_EVENTS) + 1)
        dependents.append(receives.event[receive])
    for (sender, receiver), (events, dependents) in pairs.items():
        yield Requirement(members[sender].process, members[receiver].process, events, dependents)
    if AMBIGUOUS in segments.certainty:
        yield from _of_candidates(found, begun, senders)


def _of_candidates(found: Matched, begun: Sequence[int], senders: Sequence[int]) -> Iterator[Requirement]:
    """Yield for each ambiguous segment the last send of each process that could be the one."""
    sends, receives, segments = found.sends, found.receives, found.segments
    tickets = [*sends.ticket, *(sends.members[index].transfers.ticket[row] for index, row in sends.open)]
    tables: dict[int, dict[int, tuple[list[int], list[int]]]] = {}
    for at, group in segments.groups.items():
        table = tables.get(id(group))
        if table is None:
            table = tables[id(group)] = _last_sends(group, begun, senders, tickets)
        receive = segments.receive[at]
        target = receives.members[receives.member[receive]].process
        for sender, (before, last) in table.items():
            count = bisect_right(before, receives.ticket[receive] or NEVER)
            if count:
                source = sends.members[sender].process
                yield Requirement(source, target, (min(last[count - 1], MOST_EVENTS) + 1,), (receives.event[receive],))


def _last_sends(
    group: Sequence[int], begun: Sequence[int], senders: Sequence[int], tickets: Sequence[int]
) -> dict[int, tuple[list[int], list[int]]]:
    """Return for each sender the tickets of its sends in order, and the last begin up to each."""
    found: dict[int, tuple[list[int], list[int]]] = {}
    for send in sorted(group, key=tickets.__getitem__):
        before, last = found.setdefault(senders[send], ([], []))
        before.append(tickets[send])
        last.append(max(begun[send], last[-1] if last else 0))
    return found
