"""All schedules of a program with up to so many preemptions, one after the other.

The number of preemptions is bounded, as most bugs need few (M. Musuvathi and S. Qadeer, Iterative context bounding for
systematic testing of multithreaded programs, 2007). Where a thread waits or ends, each that can run goes on in turn,
which does not count as one; nor does another order of what is ready at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replaydbg.classes import NamedTuple, dataclass, field, replace
from replaydbg.futures.schedules.decisions import Decision, Deviating, PreemptionPoint, ReadyOrder, ThreadChoice
from replaydbg.futures.schedules.given import Deviation, DeviationKind, FutureSchedule, with_deviations
from replaydbg.futures.searches.local_lines import LocalLines


class SystematicNode(NamedTuple):
    """A schedule that is to be tried."""

    deviations: tuple[Deviation, ...]
    preemptions: int
    """How many of them are preemptions."""


class SystematicCount(NamedTuple):
    """How far the search has come."""

    preemptions: int
    """Schedules with up to so many were to be tried."""
    left: int
    """Schedules that are known and were not tried; they lead to further ones. 0: all were."""
    equal: int
    """Preemptions that were left out, since another one that was tried ends the same."""


@dataclass(slots=True)
class SystematicSearch:
    """Which schedules are to be tried: those with fewer preemptions first."""

    most: int
    """Preemptions."""
    local: LocalLines
    """Which lines no other thread can notice."""
    levels: dict[int, list[SystematicNode]] = field(default_factory=lambda: {0: [SystematicNode((), 0)]})
    """By the number of preemptions, those that are to be tried."""
    equal: int = 0
    """Preemptions that were left out."""

    def take(self, most: int) -> list[SystematicNode]:
        """Return up to `most` schedules that come next; none: all were tried."""
        for level in sorted(self.levels):
            nodes = self.levels[level]
            if nodes:
                taken = nodes[:most]
                del nodes[:most]
                return taken
        return []

    def schedule(self, node: SystematicNode) -> FutureSchedule:
        """Return a node as the core takes it."""
        notes_points = node.preemptions < self.most
        schedule = with_deviations(node.deviations, traces=True, notes_points=notes_points)
        return replace(schedule, names_plain=notes_points)

    def add(self, node: SystematicNode, decisions: Sequence[Decision]) -> None:
        """Add the schedules that deviate once more than `node`, after its own deviations."""
        for deviation in self._alternatives(_after(node.deviations, decisions)):
            preemptions = node.preemptions + (deviation.kind is DeviationKind.PREEMPTION)
            if preemptions <= self.most:
                nodes = self.levels.setdefault(preemptions, [])
                nodes.append(SystematicNode((*node.deviations, deviation), preemptions))

    @property
    def count(self) -> SystematicCount:
        """How far it has come."""
        return SystematicCount(self.most, sum(map(len, self.levels.values())), self.equal)

    def _alternatives(self, decisions: Sequence[Decision]) -> Iterator[Deviation]:
        before: Decision | None = None
        for each in decisions:
            here = each[:3]
            if isinstance(each, PreemptionPoint):
                if isinstance(before, PreemptionPoint) and self.local.is_same_as_before(before, each):
                    self.equal += len(each.ready)
                else:
                    yield from (Deviation(DeviationKind.PREEMPTION, *here, other) for other in each.ready)
            elif isinstance(each, ReadyOrder):
                yield from (Deviation(DeviationKind.ORDER, *here, number) for number in range(1, each.orders))
            elif isinstance(each, ThreadChoice) and not each.is_preemption:
                yield from (Deviation(DeviationKind.CHOICE, *here, other) for other in each.ready[1:])
            before = each


def _after(deviations: tuple[Deviation, ...], decisions: Sequence[Decision]) -> Sequence[Decision]:
    """Return the decisions after the last of these deviations; none if it was not met."""
    if not deviations:
        return decisions
    for place, each in enumerate(decisions):
        if isinstance(each, Deviating) and each.deviation == deviations[-1]:
            return decisions[place + 1 :]
    return ()
