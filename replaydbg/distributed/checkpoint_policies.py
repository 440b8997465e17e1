"""Checkpoints that processes would have taken under a policy, and from where a group could be resumed after a failure.

Computed over a recorded run: nothing is resumed. E. N. Elnozahy et al., A Survey of Rollback-Recovery Protocols in
Message-Passing Systems, ACM Computing Surveys 34 (2002), has the terms.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, islice
from typing import NamedTuple

from replaydbg.distributed.cuts import CutFinder
from replaydbg.distributed.matching.columns import NEVER, Member
from replaydbg.distributed.matching.matching import GroupMatching

UNCOORDINATED, COORDINATED, INDUCED = POLICIES = ("uncoordinated", "coordinated", "induced")
"""Each process for itself; all together, in a consistent cut; each for itself, and before a receive whenever the sender
has taken more than the receiver (index-based: D. Briatico, A. Ciuffoletti and L. Simoncini, 1984).
"""

EVENTS, TRANSFERS, ADAPTIVE, TIME = TRIGGERS = ("events", "transfers", "adaptive", "time")
"""A checkpoint after so many events of the process; after so many sends and receives; as many as by events, but sooner
where it sends and receives more often than on average, so that more changes for others; or after so much time.
"""

Times = Mapping[int, Sequence[tuple[int, int]]]
"""For each process marks of its clock, ascending: a position, and nanoseconds since its start."""


MOST_CHECKPOINTS = 1_000_000
"""Of one process: a recording can claim any number of events."""


class Policy(NamedTuple):
    """When checkpoints are taken."""

    kind: str
    """One of POLICIES."""
    every: int
    """After how many, or how many nanoseconds; for `coordinated` those of the process with the most events, which
    begins each cut.
    """
    trigger: str = EVENTS
    """One of TRIGGERS."""


class CheckpointPositions(NamedTuple):
    """The positions of the checkpoints of a run."""

    positions: dict[int, list[int]]
    """For each process, ascending; the beginning of each process is one more."""
    forced: int
    """How many were taken only because of a message."""

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(map(len, self.positions.values()))


class Recovery(NamedTuple):
    """Where a group goes back to."""

    line: dict[int, int]
    """For each process its position: the recovery line."""
    lost: dict[int, int]
    """For each process, how many of its events are done again."""
    steps: int
    """How many processes had to go back further than to their own last checkpoint."""
    executed: int
    """How many events the processes had executed when the failure occurred."""

    @property
    def to_the_start(self) -> list[int]:
        """The processes that go back to their beginning: the domino effect, if they had checkpoints."""
        return [process for process, position in self.line.items() if not position]


class _Act(NamedTuple):
    """A send or a receive of a process."""

    ticket: int
    process: int
    position: int
    """For a receive its event, for a send the number of events before it."""
    send: tuple[int, int] | None
    """A send: which channel, and which send; None: a receive."""
    sends: tuple[tuple[int, int], ...]
    """A receive: those whose bytes it took."""


class CheckpointedRun:
    """A recorded run, as it would have been with checkpoints."""

    def __init__(self, group: GroupMatching, finder: CutFinder, times: Callable[[], Times] = dict) -> None:
        """Take a group with what finds its cuts; `times` is asked for the times if a policy needs them."""
        self._group, self._finder = group, finder
        self._read_times = times

    def checkpoints(self, policy: Policy) -> CheckpointPositions:
        """Return the checkpoints under a policy; of each process at most MOST_CHECKPOINTS of its own accord."""
        due = {
            each.process: list(islice(_due(each, policy, self._times_of(each, policy)), MOST_CHECKPOINTS))
            for each in self._group.members
        }
        if policy.kind == UNCOORDINATED:
            return CheckpointPositions(due, 0)
        if policy.kind == COORDINATED:
            return self._coordinated(due)
        first = {each.process: max(each.branch, 1) for each in self._group.members}
        return _induced(self._acts, due, first)

    def recovery(self, checkpoints: CheckpointPositions, failed: Sequence[int]) -> Recovery:
        """Return the recovery line if these processes fail at their ends: they go on from checkpoints.

        It is the latest consistent cut of checkpoints and, for those that did not fail, of their positions at that
        time.
        """
        present = self.present_at(failed)
        allowed: dict[int, Sequence[int]] = {}
        for process, positions in checkpoints.positions.items():
            known = positions[: bisect_right(positions, present[process])]
            is_alive = process not in failed and present[process]
            allowed[process] = [*known, present[process]] if is_alive and present[process] not in known else known
        first = {process: _at_or_before(allowed[process], at) for process, at in present.items()}
        line = self._finder.latest(present, allowed)
        # What a forked process shares with its parent is the parent's.
        begin = {member.process: max(member.branch - 1, 0) for member in self._group.members}
        lost = {process: max(at - max(line[process], begin[process]), 0) for process, at in present.items()}
        steps = sum(line[process] != position for process, position in first.items())
        return Recovery(line, lost, steps, sum(max(at - begin[each], 0) for each, at in present.items()))

    def present_at(self, failed: Sequence[int]) -> dict[int, int]:
        """Return the positions at the time of the failure: just before the end of the first one that fails.

        Nobody has noticed yet that it ended.
        """
        # One without a send or a receive is seen by nobody: the others restrict it.
        now = min((last for each in failed if (last := self._clocks[each].last)), default=NEVER)
        wanted = {process: clock.position_at(now) for process, clock in self._clocks.items()}
        return self._finder.latest({each: at - (each in failed and at > 1) for each, at in wanted.items()})

    def _times_of(self, member: Member, policy: Policy) -> Sequence[tuple[int, int]]:
        return self._times.get(member.process, ()) if policy.trigger == TIME else ()

    @cached_property
    def _times(self) -> Times:
        return self._read_times()

    def _coordinated(self, due: Mapping[int, Sequence[int]]) -> CheckpointPositions:
        """All processes take one when the one with the most events does, each as late as the cut stays consistent."""
        taken: dict[int, list[int]] = {process: [] for process in due}
        initiator = max(due, key=lambda process: self._finder.last[process], default=0)
        for position in due.get(initiator, ()):
            now = self._clocks[initiator].ticket_at(position)
            wanted = {process: clock.position_at(now) for process, clock in self._clocks.items()}
            wanted[initiator] = position
            for process, at in self._finder.latest(wanted).items():
                if at and (not taken[process] or taken[process][-1] < at):
                    taken[process].append(at)
        return CheckpointPositions(taken, 0)

    @cached_property
    def _acts(self) -> list[_Act]:
        return _acts(self._group)

    @cached_property
    def _clocks(self) -> dict[int, _Clock]:
        acts: dict[int, list[_Act]] = {process: [] for process in self._finder.last}
        for act in self._acts:
            acts[act.process].append(act)
        return {process: _Clock(each, self._finder.last[process]) for process, each in acts.items()}


def _at_or_before(positions: Sequence[int], position: int) -> int:
    at = bisect_right(positions, position)
    return positions[at - 1] if at else 0


def _due(member: Member, policy: Policy, times: Sequence[tuple[int, int]]) -> Iterator[int]:
    """Yield the positions at which a process takes checkpoints of its own accord."""
    first = max(member.branch, 1)
    closes = {end.number for end in member.endpoints if end.kind == "stream"}
    used = zip(member.transfers.event, member.transfers.endpoint, strict=True)
    ended = sorted(event for event, endpoint in used if event and endpoint not in closes)
    if policy.trigger == EVENTS:
        yield from range(first - 1 + policy.every, member.events + 1, policy.every)
    elif policy.trigger == ADAPTIVE:
        yield from _adaptive(first, member.events, ended, policy.every)
    elif policy.trigger == TIME:
        yield from _periodic([(position, time) for position, time in times if position >= first], policy.every)
    else:
        yield from _ascending(ended[policy.every - 1 :: policy.every])


def _ascending(positions: Iterable[int]) -> Iterator[int]:
    last = 0
    for each in positions:
        if each > last:
            last = each
            yield each


def _adaptive(first: int, last: int, ended: Sequence[int], every: int) -> Iterator[int]:
    """Yield as many positions as one in `every` events.

    Half of what is needed for one comes from events, half from sends and receives: so they are nearer to each other
    where there are more of these.
    """
    if not ended:
        yield from range(first - 1 + every, last + 1, every)
        return
    # In integers: an event is worth as much as there are sends and receives, and one of these as much as there are
    # events.
    worth, events = len(ended), last - first + 1
    needed, collected, position = 2 * every * worth, 0, first - 1
    for at, count in [*sorted(Counter(ended).items()), (last, 0)]:
        if not first <= at <= last:
            continue
        # A recording can claim any number of events: those between two of these are not looked at one by one.
        while position + (steps := max(-((collected - needed) // worth), 1)) < at:
            position += steps
            collected += steps * worth - needed
            yield position
        if at > position:
            collected += (at - position) * worth + count * events
            position = at
            if collected >= needed:
                collected -= needed
                yield position


def _periodic(times: Sequence[tuple[int, int]], period: int) -> Iterator[int]:
    """Yield the first position at which each period has passed, as far as the marks of the clock show it."""
    if not times:
        return
    following = times[0][1] + period
    for position, time in times:
        if time >= following:
            following = time - (time - following) % period + period
            if position:
                yield position


class _Clock:
    """How far a process had gone at each ticket of the group's clock, and the other way round."""

    def __init__(self, acts: Sequence[_Act], end: int) -> None:
        """Take its sends and receives in the order of their tickets, and its last position."""
        self._end = end
        self._tickets = [act.ticket for act in acts]
        # A send can be made from its position on, a receive is made with its event.
        places = [act.position - (act.send is None) for act in acts]
        self._least = list(accumulate(reversed(places), min))
        self._least.reverse()
        order = sorted(range(len(acts)), key=lambda at: acts[at].position)
        self._positions = [acts[at].position for at in order]
        self._latest = list(accumulate((acts[at].ticket for at in order), max))

    @property
    def last(self) -> int:
        """The last ticket that it took; 0: none."""
        return self._tickets[-1] if self._tickets else 0

    def position_at(self, ticket: int) -> int:
        """Return its position when the clock showed a ticket."""
        at = bisect_right(self._tickets, ticket)
        return self._least[at] if at < len(self._least) else self._end

    def ticket_at(self, position: int) -> int:
        """Return the last ticket that it had taken at a position."""
        at = bisect_right(self._positions, position)
        return self._latest[at - 1] if at else 0


def _induced(acts: Sequence[_Act], due: Mapping[int, Sequence[int]], first: Mapping[int, int]) -> CheckpointPositions:
    """Each process counts its checkpoints; before it receives from one that has counted further it takes one, too."""
    index = dict.fromkeys(due, 0)
    done = dict.fromkeys(due, 0)
    taken: dict[int, list[int]] = {process: [] for process in due}
    sent: dict[tuple[int, int], int] = {}
    forced = 0

    def take_due(process: int, position: int) -> None:
        while done[process] < len(due[process]) and due[process][done[process]] <= position:
            at = due[process][done[process]]
            done[process] += 1
            if not taken[process] or taken[process][-1] < at:
                taken[process].append(at)
                index[process] += 1

    for act in acts:
        take_due(act.process, act.position - (act.send is None))
        if act.send is not None:
            sent[act.send] = index[act.process]
            continue
        highest = max((sent.get(each, 0) for each in act.sends), default=0)
        if highest > index[act.process]:
            index[act.process] = highest
            before = act.position - 1
            if before >= first[act.process] and (not taken[act.process] or taken[act.process][-1] < before):
                taken[act.process].append(before)
                forced += 1
    for process in due:
        take_due(process, 1 << 62)
    return CheckpointPositions(taken, forced)


def _acts(group: GroupMatching) -> list[_Act]:
    """Return all sends and receives in the order of their tickets, in which each send comes before its receives."""
    found = []
    for channel in group.channels:
        matched = group.match(channel)
        sends, receives, segments = matched.sends, matched.receives, matched.segments
        taken: dict[int, list[tuple[int, int]]] = {}
        for send, receive in zip(segments.send, segments.receive, strict=True):
            taken.setdefault(receive, []).append((channel.number, send))
        for at in range(len(sends)):
            process = sends.members[sends.member[at]].process
            found.append(_Act(sends.ticket[at], process, sends.begun[at], (channel.number, at), ()))
        for at in range(len(receives)):
            process = receives.members[receives.member[at]].process
            found.append(_Act(receives.ticket[at], process, receives.event[at], None, tuple(taken.get(at, ()))))
    return sorted(found, key=lambda act: act.ticket)
