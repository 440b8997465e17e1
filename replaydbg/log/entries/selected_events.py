"""Read a log for the events of some gates: the others are decoded and counted, but not built."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from replaydbg.classes import dataclass
from replaydbg.events.records import Entry, Site
from replaydbg.events.run_facts import GateRow
from replaydbg.events.values import ExceptionValue, Value
from replaydbg.log.coding.decode import Cursor, Malformed
from replaydbg.log.entries.stream import SHAPE_ARGUMENTS, SHAPE_DIGEST, SHAPE_FILLED, LogStream


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
        self._left_out: dict[int, tuple[Site, int]] = {}
        self._passed: dict[int, tuple[int, Site]] = {}
        self._passed_ns = 0
        self._new_arguments: set[int] = set()
        self._old_arguments: set[int] = set()

    def selected(self) -> Iterator[Entry | PassedEvents]:
        """Yield the entries of an event log; in the place of events that are not wanted, how far they go."""
        entries: Iterator[Entry | None] = self._decode(self._entry)
        for entry in entries:
            if entry is None:
                continue
            if self._passed:
                yield self._take_passed()
            yield entry
        if self._passed:
            yield self._take_passed()

    def _take_passed(self) -> PassedEvents:
        new = self._new_arguments - self._old_arguments
        self._old_arguments |= new
        passed = PassedEvents(
            max(number for number, _ in self._passed.values()),
            self._passed_ns,
            self._passed,
            tuple(self._arguments[each - 1] for each in sorted(new)),
        )
        self._passed, self._new_arguments = {}, set()
        return passed

    def _entry(self, cursor: Cursor) -> Entry | None:
        start = cursor.pos
        head = cursor.varint()
        site_id = head >> 2
        place = self._left_out.get(site_id) if head & 3 < 2 else None
        if place is not None:
            self._pass(cursor, place, raised=bool(head & 3))
            return None
        cursor.pos = start
        if head & 3 < 2 and 1 <= site_id <= len(self._sites) and not self._wanted(self._sites[site_id - 1][0].gate):
            self._left_out[site_id] = self._sites[site_id - 1]
            return self._entry(cursor)
        return super()._entry(cursor)

    def _pass(self, cursor: Cursor, place: tuple[Site, int], *, raised: bool) -> None:
        """Decode an event that is not wanted, which takes most of the time until a program with a long log is live."""
        site, shape = place
        arguments = cursor.varint() if shape & SHAPE_ARGUMENTS else 0
        if arguments > len(self._arguments) or (shape & SHAPE_ARGUMENTS and not arguments):
            raise Malformed(f"arguments {arguments} is not defined")
        if shape & SHAPE_DIGEST:
            cursor.raw(4)
        outcome = cursor.value()
        if raised and outcome is not None and not isinstance(outcome, ExceptionValue):
            raise Malformed("a raised value is not an exception")
        if shape & SHAPE_FILLED:
            cursor.value()
        self.crossings += 1
        self._passed[self._lane] = self.crossings, site
        self._passed_ns = self._time_ns
        if arguments:
            self._new_arguments.add(arguments)
