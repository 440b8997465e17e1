"""Read a log for the events of some gates: the others are decoded and counted, but not built."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from replaydbg.classes import dataclass
from replaydbg.events.records import Entry, Site
from replaydbg.events.run_facts import GateRow
from replaydbg.events.values import Value
from replaydbg.log.coding.decode import Cursor
from replaydbg.log.entries.plain_runs import PlainRuns
from replaydbg.log.entries.stream import SHAPE_ARGUMENTS, LogStream

_PATIENCE = 20
"""Events to pass by one at a time, for each site, before new sites are learned: that takes as long as five of them."""
_SHORT = 8
"""Shorter runs do not pay for an attempt to find one."""


@dataclass(frozen=True, slots=True)
class PassedEvents:
    """Events that were left out, between two entries."""

    last: int
    """The number of the last one."""
    time_ns: int
    """When it happened: nanoseconds from the start to the last clock mark before it."""
    by_lane: dict[int, tuple[int, Site]]
    """The number and the place of the last one of each lane."""


class SelectedStream(LogStream):
    """A log of which only the events of some gates are wanted. See `LogStream`."""

    def __init__(
        self,
        pieces: Iterator[bytes],
        *,
        total: int,
        stored: int,
        gates: Sequence[GateRow] = (),
        wanted: Callable[[str], bool],
    ) -> None:
        """`wanted`: whether the events of a gate are wanted, by its name."""
        super().__init__(pieces, total=total, stored=stored, gates=gates)
        self._wanted = wanted
        self._passed: dict[int, tuple[int, Site]] = {}
        self._passed_ns = 0
        self._runs = PlainRuns((), ())
        self._known = 0
        """Number of sites that were there when `_runs` was made."""
        self._decoded = 0
        """Number of events passed by one at a time since then."""
        self._wait = 0
        """Number of records to decode before the next attempt to find a run."""

    def selected(self) -> Iterator[Entry | PassedEvents]:
        """Yield the entries of an event log; in the place of events that are not wanted, how far they go."""
        entries: Iterator[Entry | None] = self._decode(self._entry, all_records=False)
        for entry in entries:
            if entry is None:
                continue
            if self._passed:
                yield self._take_passed()
            yield entry
        if self._passed:
            yield self._take_passed()

    def _take_passed(self) -> PassedEvents:
        last = max(number for number, _ in self._passed.values())
        passed = PassedEvents(last, self._passed_ns, self._passed)
        self._passed = {}
        return passed

    def _entry(self, cursor: Cursor) -> Entry | None:
        if self._wait:
            self._wait -= 1
            return super()._entry(cursor)
        if self._decoded > _PATIENCE * (50 + len(self._sites)) and self._known < len(self._sites):
            self._learn()
        run = self._runs.at(cursor.data, cursor.pos)
        if run is None or run.events < _SHORT:
            self._wait = _SHORT
        if run is None or (run.arguments and not 0 < min(run.arguments) <= max(run.arguments) <= len(self._arguments)):
            return super()._entry(cursor)
        cursor.pos = run.end
        self.crossings += run.events
        self._pass_run(self._sites[run.site - 1][0])
        return None

    def _learn(self) -> None:
        """Let events of all sites so far that are not wanted be passed by in runs."""
        passed = [(number, shape) for number, (_, shape, is_wanted) in enumerate(self._sites, 1) if not is_wanted]
        plain = [number for number, shape in passed if not shape]
        self._runs = PlainRuns(plain, [number for number, shape in passed if shape == SHAPE_ARGUMENTS])
        self._known, self._decoded = len(self._sites), 0

    def _is_wanted(self, site: Site) -> bool:
        return self._wanted(site.gate)

    def _pass_by(self, site: Site, arguments: tuple[Value, ...] | None) -> None:
        self._decoded += 1
        self._pass_run(site)

    def _pass_run(self, last: Site) -> None:
        self._passed[self._lane] = self.crossings, last
        self._passed_ns = self._time_ns
