"""Decode the records of a log from pieces of bytes, so that a log of any size takes little memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from replaydbg.events.records import Control, ControlKind, Entry, Event, Site, SwitchReason, WorldAnswer
from replaydbg.events.run_facts import GateRow
from replaydbg.events.values import ExceptionValue, TypeName, Value
from replaydbg.log.allowance import FLOOR, allowance
from replaydbg.log.coding.decode import Cursor, Malformed, Short
from replaydbg.log.entries.checksums import CHECKSUM, skip_checksum
from replaydbg.log.entries.repeats import Repeats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    _T = TypeVar("_T")

SHAPE_ARGUMENTS, SHAPE_DIGEST, SHAPE_FILLED = 1, 2, 4

PLACE_LEVELS = 6
"""Maximum number of state fingerprints for a place in pure computation, besides that of its stack."""

PLACE_WITH_CONTENTS = PLACE_LEVELS + 1
"""In place of the number of state fingerprints: all of them, the CPU time, and hashes of contents follow."""

MOST_CHUNKS = 128
"""Maximum number of hashes of contents, of what the topmost frame reaches and of what all frames reach."""

RECORD_LIMIT = 256 << 20
"""The largest valid record in bytes. Longer contents are stored apart from the log."""

RECORD_FLOOR = FLOOR // 2
"""The largest record of a log with few stored bytes. Decoding holds it in memory several times."""

MINIMUM_BUDGET = 1 << 22
"""Number of definitions, or elements in one record, that any log may have; a longer one may have one for each stored
byte.
"""

MOST_STEPS = 16 << 20
"""Most work of checking a log with few stored bytes. A step is an element of a value and takes 0.12 to 0.25 µs."""

STEPS_PER_BYTE = 64
"""The same for each stored byte of a longer log.

Repeated records take no work, and others have stored bytes of their own: genuine logs take up to 35 steps a byte.
"""

_RECORD_STEPS = 16
"""Steps that a record itself takes."""

_BYTES_PER_STEP = 64
"""Bytes of a long value that are decoded in the time of a step."""

_Code = tuple[str, str, int]


class LogStream:
    """The entries of one log, decoded from `pieces`, which begin after the log's header.

    Iterating `entries` or `answers` ends at the first incomplete record; then `problem` describes damage, if any (None
    if everything was decoded), and `position` and `crossings` are the progress made.
    """

    def __init__(self, pieces: Iterator[bytes], *, total: int, stored: int, gates: Sequence[GateRow] = ()) -> None:
        """`total` is the maximum size of all pieces in bytes; `stored` how many bytes of the file they take."""
        self.problem: str | None = None
        """Why the decoding ended early, as text that follows "the log"."""
        self.position = 0
        """The end of the last complete record, in bytes after the log's header."""
        self.crossings = 0
        """Number of decoded events."""
        self._pieces = pieces
        self._total = total
        self._budget = max(MINIMUM_BUDGET, stored)
        self._steps = max(MOST_STEPS, STEPS_PER_BYTE * stored)
        self._builds_events = True
        self._record_limit = min(RECORD_LIMIT, allowance(stored, floor=RECORD_FLOOR))
        self._definitions = 0
        # Definitions stay in memory until the end of the log: their total size has a limit.
        self._defined_elements = 0
        self._defined_bytes = 0
        self._defined_limit = allowance(stored)
        self._gates = gates
        self._codes: list[_Code] = []
        self._sites: list[tuple[Site, int, bool]] = []
        self._arguments: list[tuple[Value, ...]] = []
        self._types: list[TypeName] = []
        self._cursor = Cursor(b"", self._types)
        self._lane = 0
        self._time_ns = 0

    @property
    def content_end(self) -> int:
        """The end of the last content that the records so far refer to."""
        return self._cursor.content_end

    def entries(self) -> Iterator[Entry]:
        """Yield the entries of an event log."""
        for entry in self._decode(self._entry, all_records=False):
            if entry is not None:
                yield entry

    def answers(self) -> Iterator[WorldAnswer]:
        """Yield the answers of a world log, with a limit on the work: a recorder writes no answer twice."""
        position = 0
        for answer in self._decode(self._answer):
            size, position = self.position - position, self.position
            if not self._spend(size):
                return
            if answer is not None:
                yield answer

    def check_entries(self) -> None:
        """Decode an event log only for `problem` and `crossings`: all records except those that repeat others.

        The work is limited by the stored size: few stored bytes can expand to hundreds of millions of records.
        """
        cursor, repeats = self._cursor, Repeats()
        self._builds_events = False
        position = crossings = definitions = 0
        for _ in self._decode(self._entry):
            size = self.position - position
            if not self._spend(size):
                break
            if cursor.data is not repeats.data:
                repeats = Repeats(cursor.data)
            if self._definitions > definitions:
                definitions = self._definitions
                repeats.end_stretch(cursor.pos - size, crossings)
            else:
                repeats.add(cursor.pos - size, crossings)
            end, self.crossings = repeats.skip(cursor.pos, self.crossings)
            position = self.position = self.position + end - cursor.pos
            cursor.pos = end
            crossings = self.crossings

    def _spend(self, size: int) -> bool:
        """Whether the work for the record just decoded, of `size` bytes, is within the limit; if not, set `problem`."""
        self._steps -= _RECORD_STEPS + self._budget - self._cursor.budget + size // _BYTES_PER_STEP
        if self._steps >= self._cursor.work:
            return True
        self.problem = f"takes more work to read than a recording of its size, {self.position} bytes in"
        return False

    def _decode(self, read: Callable[[Cursor], _T], *, all_records: bool = True) -> Iterator[_T]:
        """Yield the result of `read` for each record; without `all_records` only those that are not None."""
        cursor, budget = self._cursor, self._budget
        while True:
            if cursor.pos == len(cursor.data) and not self._fill(cursor.pos, cursor.pos + 1):
                return
            start = cursor.pos
            cursor.budget = budget
            try:
                record = read(cursor)
            except Short as short:
                if not self._fill(start, short.needed):
                    self.problem = f"breaks off inside a record, {self.position} bytes in"
                    return
                continue
            except Malformed as error:
                self.problem = f"cannot be read {self.position} bytes in: {error}"
                return
            self.position += cursor.pos - start
            if all_records or record is not None:
                yield record

    def _fill(self, start: int, needed: int) -> bool:
        """Discard the bytes before `start` and fetch until `needed` bytes are available;

        False if there are not enough.
        """
        cursor = self._cursor
        needed -= start
        if needed > min(self._total - self.position, self._record_limit):
            return False
        kept = [cursor.data[start:]]
        have = len(kept[0])
        # Doubled each time, or a long record would be restarted for each piece of it.
        wanted = max(needed, 2 * have)
        while have < wanted:
            piece = next(self._pieces, b"")
            if not piece:
                break
            kept.append(piece)
            have += len(piece)
        cursor.data = b"".join(kept)
        cursor.pos = 0
        return have >= needed

    def _entry(self, cursor: Cursor) -> Entry | None:
        head = cursor.varint()
        kind = head & 3
        if kind == 2:
            return self._control(cursor, head >> 2)
        if kind == 3:
            self._define(cursor, head >> 2)
            return None
        return self._crossing(cursor, head >> 2, kind == 1)

    def _crossing(self, cursor: Cursor, site_id: int, raised: bool) -> Event | None:
        site, shape, is_wanted = _defined(self._sites, site_id, "site")
        arguments = digest = filled = None
        if shape & SHAPE_ARGUMENTS:
            arguments = _defined(self._arguments, cursor.varint(), "arguments")
        if shape & SHAPE_DIGEST:
            digest = cursor.raw(4)
        outcome = cursor.value()
        if raised and outcome is not None and not isinstance(outcome, ExceptionValue):
            raise Malformed("a raised value is not an exception")
        if shape & SHAPE_FILLED:
            filled = cursor.value()
        self.crossings += 1
        if is_wanted:
            return Event(self.crossings, self._lane, site, arguments, raised, outcome, filled, digest, self._time_ns)
        self._pass_by(site, arguments)
        return None

    def _is_wanted(self, site: Site) -> bool:
        """Whether events of a site, which is being defined, are wanted as values."""
        return self._builds_events

    def _pass_by(self, site: Site, arguments: tuple[Value, ...] | None) -> None:
        """Note the event just decoded, which is not wanted as a value."""

    def _control(self, cursor: Cursor, rest: int) -> Control | None:
        kind = _CONTROLS[rest] if rest < len(_CONTROLS) else _LATER_CONTROLS.get(rest)
        if kind is None:
            raise Malformed(f"control record {rest} is not known")
        if kind is ControlKind.CHECKSUM:
            skip_checksum(cursor)
            return None
        if kind is ControlKind.CALLBACK:
            cursor.value()
            return Control(kind, self.crossings, self._lane, self._time_ns)
        if kind is ControlKind.NOTE:
            note = cursor.value()
            if type(note) is not tuple or len(note) != 2 or not all(type(part) is str for part in note):
                raise Malformed("a note is not made of two texts")
            return Control(kind, self.crossings, self._lane, self._time_ns, note=note)
        if kind is ControlKind.MARK:
            text = cursor.value()
            if type(text) is not str:
                raise Malformed("a mark is not text")
            return Control(kind, self.crossings, self._lane, self._time_ns, name=text)
        number = cursor.varint()
        if kind is ControlKind.SIGNAL_BETWEEN:
            return self._signal(cursor, number)
        if kind is ControlKind.TIME:
            self._time_ns = number
        elif kind is ControlKind.LANE:
            before, why, ticks = self._lane, _WHYS[cursor.varint() & 3], cursor.varint()
            self._lane = number
            return Control(kind, self.crossings, before, self._time_ns, number, why=why, ticks=ticks)
        elif kind is ControlKind.LANE_STARTED:
            name = cursor.value()
            if type(name) is not str:
                raise Malformed("a thread's name is not text")
            return Control(kind, self.crossings, self._lane, self._time_ns, number, name=name)
        elif kind is ControlKind.STREAM:
            _, _, number = cursor.varint(), cursor.varint(), cursor.varint()
            _, _, length = cursor.varint(), cursor.varint(), cursor.varint()
            cursor.raw(length)
        elif kind is ControlKind.MEMORY:
            number, _ = number >> 1, cursor.varint()
            cursor.raw(cursor.varint())
        elif kind is ControlKind.NO_MEMORY:
            cursor.varint()
        elif kind is ControlKind.COLLECTOR:
            number += cursor.varint() + cursor.varint()
            cursor.varint()
        return Control(kind, self.crossings, self._lane, self._time_ns, number)

    def _signal(self, cursor: Cursor, number: int) -> Control:
        fingerprint, instruction, ticks, levels = cursor.raw(8), cursor.varint(), cursor.varint(), cursor.varint()
        if levels > PLACE_WITH_CONTENTS:
            raise Malformed(f"a place has {levels} fingerprints")
        has_contents = levels == PLACE_WITH_CONTENTS
        fingerprint += cursor.raw(8 * (PLACE_LEVELS if has_contents else levels))
        computed_us = cursor.varint() if has_contents else None
        for _ in range(2 if has_contents else 0):
            size, chunks = cursor.varint(), cursor.varint()
            if size == 0 or chunks > MOST_CHUNKS:
                raise Malformed(f"a place has {chunks} hashes of contents")
            fingerprint += cursor.raw(8 * chunks)
        return Control(
            ControlKind.SIGNAL_BETWEEN,
            self.crossings,
            self._lane,
            self._time_ns,
            number,
            fingerprint=fingerprint,
            instruction=instruction,
            computed_us=computed_us,
            ticks=ticks - 1 if ticks else None,
        )

    def _define(self, cursor: Cursor, rest: int) -> None:
        if self._definitions >= self._budget:
            raise Malformed("it defines more than a recording of this size can use")
        start, budget = cursor.pos, cursor.budget
        if rest == 0:
            self._codes.append((cursor.text(), cursor.text(), cursor.varint()))
        elif rest == 1:
            site, shape = self._site(cursor)
            self._sites.append((site, shape, self._is_wanted(site)))
        elif rest == 2:
            arguments = cursor.value()
            if type(arguments) is not tuple:
                raise Malformed("arguments are not a tuple")
            self._arguments.append(arguments)
        elif rest == 3:
            self._types.append(TypeName(cursor.text(), cursor.text()))
        else:
            raise Malformed(f"definition {rest} is not known")
        # Counted last: a record that breaks off at the end of a piece is read again.
        self._definitions += 1
        self._defined_elements += budget - cursor.budget
        self._defined_bytes += cursor.pos - start
        if self._defined_elements > self._budget or self._defined_bytes > self._defined_limit:
            raise Malformed("its definitions take more memory than a recording of this size can use")

    def _site(self, cursor: Cursor) -> tuple[Site, int]:
        gate_id, code_id, instruction, line, shape = (cursor.varint() for _ in range(5))
        gate = _defined(self._gates, gate_id, "gate").name
        if code_id == 0:
            return Site(gate, None, None, None, instruction), shape
        file, function, _ = _defined(self._codes, code_id, "code")
        return Site(gate, file, function, line or None, instruction), shape

    def _answer(self, cursor: Cursor) -> WorldAnswer | None:
        head = cursor.varint()
        if head & 3 == 3 and head >> 2 == 3:
            self._define(cursor, 3)
            return None
        if head & 3 == 2 and head >> 2 == CHECKSUM:
            skip_checksum(cursor)
            return None
        if head & 3 != 2 or head >> 2 != 16:
            raise Malformed(f"record {head} has no place in a world log")
        operation, path, asked, outcome = cursor.text(), cursor.text(), cursor.varint(), cursor.value()
        return WorldAnswer(operation, path, asked, isinstance(outcome, ExceptionValue), outcome)


_CONTROLS = (
    ControlKind.SIGNAL_INSIDE,
    ControlKind.SIGNAL_BETWEEN,
    ControlKind.TIME,
    ControlKind.END,
    ControlKind.NOTE,
    ControlKind.LANE,
    ControlKind.CHILD,
    ControlKind.COLLECTOR,
    ControlKind.MEMORY,
    ControlKind.LANE_STARTED,
    ControlKind.CALLBACK,
    ControlKind.MARK,
    ControlKind.SERIALS,
    ControlKind.STREAM,
)
"""In the order of their numbers in the format."""

_LATER_CONTROLS = {20: ControlKind.NO_MEMORY, CHECKSUM: ControlKind.CHECKSUM, 22: ControlKind.CHAOS}
"""By their numbers."""

_WHYS = tuple(SwitchReason)
"""In the order of their numbers in the format."""


def _defined(table: Sequence[_T], number: int, what: str) -> _T:
    if 0 < number <= len(table):
        return table[number - 1]
    raise Malformed(f"{what} {number} is not defined")
