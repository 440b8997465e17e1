"""Find what a process opened between two moments and did not close: a leak of descriptors, or of children."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from replaydbg.events.records import Site
from replaydbg.resources.kinds import ChildProcess, Descriptor, EventNumber, OpenResource, Resources


@dataclass(frozen=True, slots=True)
class UnclosedAtLine:
    """Descriptors that one line opened, and that are still open."""

    site: Site | None
    """The line; None: opened by code whose calls are not recorded."""
    opened: tuple[tuple[Descriptor, OpenResource], ...]
    """Each with what it refers to, in the order in which they were opened."""


@dataclass(frozen=True, slots=True)
class Unclosed:
    """The difference of the resources of two moments."""

    earlier: EventNumber
    later: EventNumber
    lines: tuple[UnclosedAtLine, ...]
    """Those with the most descriptors first."""
    children: tuple[ChildProcess, ...]
    """Children that were started in between, and whose end was not waited for."""
    closed: tuple[tuple[Descriptor, OpenResource], ...]
    """The descriptors of the earlier moment that were closed, each with what it referred to, by number."""

    @property
    def count(self) -> int:
        """How many descriptors were opened and certainly not closed."""
        return sum(not descriptor.doubt for line in self.lines for descriptor, _ in line.opened)

    @property
    def doubtful(self) -> int:
        """How many more may be open."""
        return sum(bool(descriptor.doubt) for line in self.lines for descriptor, _ in line.opened)


def unclosed(earlier: Resources, later: Resources) -> Unclosed:
    """Compare two moments of one process. Raises ValueError if they are in the wrong order."""
    if earlier.event > later.event:
        raise ValueError(f"event {earlier.event} is after event {later.event}")
    lines = defaultdict[Site | None, list[tuple[Descriptor, OpenResource]]](list)
    kept = set[tuple[int, int]]()
    for resource in later.opened:
        for descriptor in resource.handle.descriptors:
            if descriptor.origin.event > earlier.event:
                lines[descriptor.origin.site].append((descriptor, resource))
            kept.add((descriptor.number, descriptor.origin.event))
    before = [(each, resource) for resource in earlier.opened for each in resource.handle.descriptors]
    rows = [
        UnclosedAtLine(site, tuple(sorted(opened, key=lambda each: (each[0].origin.event, each[0].number))))
        for site, opened in lines.items()
    ]
    rows.sort(key=lambda row: (-len(row.opened), row.opened[0][0].origin.event))
    children = [each for each in later.children if each.origin.event > earlier.event and not each.is_reaped]
    closed = [each for each in before if (each[0].number, each[0].origin.event) not in kept]
    closed.sort(key=lambda each: each[0].number)
    return Unclosed(earlier.event, later.event, tuple(rows), tuple(children), tuple(closed))
