"""Make the recordings of a session's failing tests smaller: remove the tests that passed and that none of them needs.

The records of those tests are removed from the log. Only a replay shows whether the others do the same without them.
The log of each recording is a prefix of the session's log. So they are made smaller together: what is left of the
shorter ones is a prefix of what is left of the longest one, and one replay passes all of them.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from replaydbg.classes import dataclass, field
from replaydbg.errors import Corrupt
from replaydbg.events.records import Control, ControlKind, Entry, Event
from replaydbg.events.stops import StopReason
from replaydbg.log.coding.encode import FORMAT
from replaydbg.log.edit.splice import spliced, with_outcome, write_with_log
from replaydbg.log.entries.logfile import LOG_HEADER, LogHeader, pack_log_header
from replaydbg.log.entries.raw import RawStream
from replaydbg.log.reader import Recording, open_recording
from replaydbg.pytest_plugin.shared.end_of_test import RecordedEnd
from replaydbg.pytest_plugin.shared.mark_reader import Making, Reports, ReportsEnded, read_mark
from replaydbg.pytest_plugin.shared.marks_of_tests import (
    REPORT_LEFT_OUT,
    AttemptBegun,
    AttemptEnded,
    PhaseRaised,
    RandomState,
    TestAsked,
)
from replaydbg.replay.tested import QUESTION

_NEVER = (ControlKind.LANE_STARTED, ControlKind.MEMORY)
"""Records that affect everything after them: a test with one is not left out, nor is any test before it."""

_FAILED = ("failed", "interrupted")
"""Outcomes of tests that stay: what pytest keeps in memory after reporting a failure affects its next report."""


@dataclass(slots=True)
class MadeReport:
    """The making of a failure's report, from the marks in the log."""

    question: tuple[int, int] = (0, 0)
    """The range of the question's event in the log; (0, 0): it was not asked."""
    has_arguments: bool = False
    """Whether that event has arguments."""
    began: int = 0
    """Number of events up to the question."""
    own: list[tuple[int, int, bool]] = field(default_factory=list)
    """The ranges of its records, and whether they are definitions."""
    events: int = 0
    """Number of events among them."""
    can_be_left_out: bool = True
    """Whether nothing in it is known to affect later tests."""


@dataclass(slots=True)
class MarkedTest:
    """A test that ran, from the marks in the log."""

    needs: tuple[int, ...]
    """The tests, numbered from 1, that set up fixtures which exist when it begins."""
    random: RandomState | None
    """The state of the module's generator when it begins; None: unchanged since the previous test began."""
    nodeid: str = ""
    """Its pytest node id; empty: it did not begin."""
    question: tuple[int, int] = (0, 0)
    """The range of the question's event in the log."""
    has_arguments: bool = False
    """Whether that event has arguments."""
    reports: list[object] = field(default_factory=list)
    """Its reports, as pytest serializes them; None for one that is too long."""
    own: list[tuple[int, int, bool]] = field(default_factory=list)
    """The ranges of its records, and whether they are definitions."""
    events: int = 0
    """Number of events among them."""
    began: int = 0
    """Number of events before it."""
    begin: int = 0
    """The offset in the log at which it begins."""
    made: list[MadeReport] = field(default_factory=list)
    """The reports of its failures."""
    raised: dict[int, int] = field(default_factory=dict)
    """Its failures: the number of events before each, and the offset in the log behind its mark."""
    has_failed: bool = False
    """Whether an attempt of it failed."""
    can_be_left_out: bool = True
    """Whether nothing in it is known to affect later tests."""


class SmallerPart(NamedTuple):
    """The part of one test's recording that remains."""

    log: int
    """The length of its log."""
    events: int
    """Number of events."""
    failed: int
    """Number of events up to the test's failure; 0: it did not fail."""
    left_out: int
    """Number of tests left out."""
    is_smaller: bool
    """Whether anything is left out: tests, or reports of failures."""
    end: dict[str, Any]
    """Its `end.json`."""


class KeptFailure:
    """The recording of a failing test, as it was cut out of the session."""

    def __init__(self, path: Path) -> None:
        """Read the recording at `path`. Raises OSError, ReplaydbgError."""
        self.path = path
        with open_recording(path) as recording:
            if recording.log_header is None or recording.end is None:
                raise Corrupt(str(path), "its log or its end is missing")
            self.end = RecordedEnd(recording.end.raw, str(path))
            self.log = recording.log_header.committed
            """The length of its log."""
            self.events = recording.end.events
            """Number of events."""

    @property
    def failed(self) -> int:
        """Number of events when it failed; 0: it did not fail."""
        return self.end.failed


class SessionLog:
    """The log of the longest recording of a session."""

    def __init__(self, longest: Path) -> None:
        """Read the recording `longest`. Raises OSError, ReplaydbgError."""
        with open_recording(longest) as recording:
            assert recording.log_header is not None, longest
            self.start_ns = recording.log_header.start_ns
            self.data = b"".join(recording.pieces("log"))
            self.items = _items(recording, self.data)
        self._begins = [each.begin for each in self.items]

    def number_of(self, kept: KeptFailure) -> int:
        """Return the number of its test, from 1."""
        return bisect_left(self._begins, kept.log)

    def number_at(self, event: int) -> int:
        """Return the number of the test that ran after so many events, from 1; 0: none had begun."""
        return bisect_right([each.began for each in self.items], event)

    def needed_by(self, number: int, also: Collection[int] = ()) -> set[int]:
        """Return the numbers of the tests without which a test cannot be replayed, it and those in `also` included."""
        return _needed(self.items[:number], {number, *also}) if number else set()

    def with_only(self, number: int, also: Collection[int]) -> SmallerLog:
        """Return the log of a test without those before it, except those in `also` and those that these need."""
        return SmallerLog(self, self.items[:number], self.needed_by(number, also))

    def without_others(self, kept: Sequence[KeptFailure], differing: Collection[int] = ()) -> SmallerLog | None:
        """Return the log of these tests without those that passed, and without the `differing` ones (numbers from 1).

        None: they need all of them.
        """
        last = max((self.number_of(each) for each in kept), default=0)
        items = self.items[:last]
        stay = {self.number_of(each) for each in kept}
        stay |= {number for number, item in enumerate(items, 1) if item.has_failed and number not in differing}
        needed = _needed(items, stay) if items else set()
        if not needed or not needed.isdisjoint(differing) or len(needed) == len(items):
            return None
        return SmallerLog(self, items, needed)


class SmallerLog:
    """A log without some tests."""

    def __init__(self, whole: SessionLog, items: list[MarkedTest], needed: set[int]) -> None:
        self._whole = whole
        self._items = items
        self._left_out = [number for number in range(1, len(items) + 1) if number not in needed]
        gone = [(items[number - 1].began, items[number - 1].events) for number in self._left_out]
        gone += [(each.began, each.events) for number in needed for each in items[number - 1].made]
        self._gone = sorted(gone)
        self._dropped = [0, *accumulate(events for _, events in self._gone)]
        changes = sorted(_changes(whole.data, items, [items[number - 1] for number in self._left_out]).items())
        self._ends = [end for (_, end), _ in changes]
        self._shifts = [0, *accumulate(len(instead) - (end - begin) for (begin, end), instead in changes)]
        self._log = spliced(whole.data, dict(changes))

    def part(self, kept: KeptFailure, *, until_failure: bool = False) -> SmallerPart | None:
        """Return what is left of a recording; None: it should end at a failure, but has none.

        With `until_failure` it ends at the test's failure, before pytest's report.
        """
        number = self._whole.number_of(kept)
        item = self._items[number - 1]
        whole_end = item.raised.get(kept.failed, 0) if until_failure else kept.log
        if not whole_end:
            return None
        left_out = bisect_left(self._left_out, number)
        events = self._number(kept.failed if until_failure else kept.events)
        end = kept.end.moved(self._number, events=events, began=item.began)
        if until_failure:
            end["reason"] = "the test had failed there"
        length = whole_end + self._shifts[bisect_right(self._ends, whole_end)]
        return SmallerPart(length, events, self._number(kept.failed), left_out, length < kept.log, end)

    def _number(self, event: int) -> int:
        """Return the number of an event after the removal of others."""
        before = bisect_left(self._gone, (event, 0))
        if not before:
            return event
        began, events = self._gone[before - 1]
        return event - self._dropped[before - 1] - min(events, event - began)

    def write(self, part: SmallerPart, kept: KeptFailure, target: Path) -> int:
        """Write it as a recording, which shares the rest with that of `kept`. Returns its size in bytes.

        Raises OSError, ReplaydbgError.
        """
        head = LogHeader(FORMAT, StopReason.NOT_STOPPED, part.log, part.events, self._whole.start_ns)
        with open_recording(kept.path) as recording:
            return write_with_log(recording, target, pack_log_header(head) + self._log[LOG_HEADER : part.log], part.end)


def _items(recording: Recording, data: bytes) -> list[MarkedTest]:
    """Return the tests in the log, in order."""
    pieces = iter([data[LOG_HEADER:]])
    stream = RawStream(pieces, total=len(data), stored=recording.size("log"), gates=recording.header.gates)
    items: list[MarkedTest] = []
    making: MadeReport | None = None
    is_doing = is_asking = is_making_asked = False
    at = LOG_HEADER
    for raw, record in stream.records():
        begin, at = at, at + len(raw)
        if isinstance(record, Control) and record.kind is ControlKind.MARK:
            mark = read_mark(record.name or "").content
            if isinstance(mark, TestAsked):
                if mark.is_worker:
                    return []  # a thread receives its next order in the middle of the tests
                items.append(MarkedTest(mark.needs, mark.random, began=stream.crossings, begin=begin))
                is_asking, is_doing = True, False
            elif isinstance(mark, Reports):
                is_doing = False
                if mark.has_report and items:
                    items[-1].reports.append(mark.report)
            elif isinstance(mark, ReportsEnded):
                is_doing = not mark.is_last
            elif mark is Making.ASKED and items:
                making, is_making_asked = MadeReport(), True
            elif mark is Making.MADE and items and making is not None:
                if making.question != (0, 0) and making.can_be_left_out:
                    items[-1].made.append(making)
                making = None
            elif isinstance(mark, PhaseRaised) and items:
                items[-1].raised.setdefault(stream.crossings, at)
            elif isinstance(mark, AttemptBegun) and items:
                items[-1].nodeid = mark.node
            elif isinstance(mark, AttemptEnded) and items:
                items[-1].has_failed |= mark.outcome in _FAILED
            continue
        if not items:
            continue
        item = items[-1]
        if is_asking and isinstance(record, Event):
            if record.gate != QUESTION or record.raised:
                return []  # no question can be answered here
            item.question, item.has_arguments = (begin, at), record.arguments is not None
            is_asking, is_doing = False, True
        elif is_doing:
            if making is not None:
                if is_making_asked and isinstance(record, Event):
                    is_making_asked = False
                    if record.gate == QUESTION and not record.raised:
                        making.question, making.has_arguments = (begin, at), record.arguments is not None
                        making.began = stream.crossings
                elif not is_making_asked:
                    _add(making, begin, at, record)
            item.own.append((begin, at, record is None))
            item.events += isinstance(record, Event)
            if isinstance(record, Control) and record.kind in _NEVER:
                item.can_be_left_out = False
    return items


def _add(making: MadeReport, begin: int, end: int, record: Entry | None) -> None:
    making.own.append((begin, end, record is None))
    making.events += isinstance(record, Event)
    if isinstance(record, Control) and record.kind in _NEVER:
        making.can_be_left_out = False


def _needed(items: list[MarkedTest], stay: set[int]) -> set[int]:
    """Return the numbers of the tests that those in `stay` need, with these, and those before a test that must stay."""
    stays = [n for n, item in enumerate(items, 1) if not item.can_be_left_out or None in item.reports]
    needed = {*stay, *range(1, max((n for n in stays if n < len(items)), default=0) + 1)}
    open_ = list(needed)
    while open_:
        for each in items[open_.pop() - 1].needs:
            if 1 <= each <= len(items) and each not in needed:
                needed.add(each)
                open_.append(each)
    return needed


def _changes(data: bytes, items: list[MarkedTest], left_out: list[MarkedTest]) -> dict[tuple[int, int], bytes]:
    """Return the changes in the log that leave some tests out: their records go, and their questions are answered."""
    changes: dict[tuple[int, int], bytes] = {}
    skipped = {id(item) for item in left_out}
    state: RandomState | None = None
    is_behind = False
    for item in items:
        state = item.random if item.random is not None else state
        if id(item) in skipped:
            changes[item.question] = _answer(data, item, {"reports": item.reports})
            changes |= {(begin, end): b"" for begin, end, is_definition in item.own if not is_definition}
            is_behind = True
            continue
        if is_behind:
            changes[item.question] = _answer(data, item, {"random": state})
            is_behind = False
        for each in item.made:
            changes[each.question] = with_outcome(
                data[slice(*each.question)], [REPORT_LEFT_OUT], has_arguments=each.has_arguments
            )
            changes |= {(begin, end): b"" for begin, end, is_definition in each.own if not is_definition}
    return changes


def _answer(data: bytes, item: MarkedTest, answer: dict[str, object]) -> bytes:
    """Return the event of the question with another answer."""
    begin, end = item.question
    return with_outcome(data[begin:end], [json.dumps(answer)], has_arguments=item.has_arguments)
