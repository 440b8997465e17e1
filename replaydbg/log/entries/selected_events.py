"""Read a log for the events of some gates: the others are decoded and counted, but not built."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from replaydbg.classes import dataclass
from replaydbg.events.records import Entry, Site
from replaydbg.events.run_facts import GateRow
from replaydbg.events.values import Value
from replaydbg.log.entries.stream import LogStream


@dataclass(frozen=True, slots=True)
class PassedEvents:
    """Events that were left out, between two entries."""

    last: int
    """The number of the last one."""
    time_ns: int
    """When it happened: nanoseconds from the start to the last clock mark before it."""
    by_lane: dict[int, tuple[int, Site]]
    """The number and the place of the last one of each lane."""
    arguments: tuple[tuple[Value, ...], ...]
    """Their arguments; what was passed before is not repeated."""


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
        self._new_arguments: dict[int, tuple[Value, ...]] = {}
        self._old_arguments: set[int] = set()

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
        new = {key: each for key, each in self._new_arguments.items() if key not in self._old_arguments}
        self._old_arguments.update(new)
        last = max(number for number, _ in self._passed.values())
        passed = PassedEvents(last, self._passed_ns, self._passed, tuple(new.values()))
        self._passed, self._new_arguments = {}, {}
        return passed

    def _is_wanted(self, site: Site) -> bool:
        return self._wanted(site.gate)

    def _pass_by(self, site: Site, arguments: tuple[Value, ...] | None) -> None:
        self._passed[self._lane] = self.crossings, site
        self._passed_ns = self._time_ns
        if arguments is not None:
            self._new_arguments[id(arguments)] = arguments  # defined once, and kept to the end of the log
