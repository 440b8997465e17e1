"""Minimize the recording of a test: remove earlier tests whose fixtures it does not use.

The records of those tests are removed from the log. Only a replay shows whether the test does the same without them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from replaydbg.events.records import Control, ControlKind, Event
from replaydbg.events.stops import StopReason
from replaydbg.log.edit.splice import spliced, with_outcome, write_with_log
from replaydbg.log.encode import FORMAT
from replaydbg.log.logfile import LOG_HEADER, LogHeader, pack_log_header
from replaydbg.log.raw import RawStream
from replaydbg.log.reader import Recording
from replaydbg.pytest_plugin.shared.end_of_test import RecordedEnd
from replaydbg.pytest_plugin.shared.mark_reader import Reports, ReportsEnded, read_mark
from replaydbg.pytest_plugin.shared.marks_of_tests import PhaseRaised, RandomState, TestAsked
from replaydbg.replay.tested import QUESTION

_NEVER = (ControlKind.LANE_STARTED, ControlKind.MEMORY)
"""Records that affect everything after them: a test with one is not left out, nor is any test before it."""


@dataclass(slots=True)
class MarkedTest:
    """A test that ran, from the marks in the log."""

    needs: tuple[int, ...]
    """The tests, numbered from 1, that set up fixtures which exist when it begins."""
    random: RandomState | None
    """The state of the module's generator when it begins; None: unchanged since the previous test began."""
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
    failed_at: int = 0
    """The offset in the log at which it had failed; 0: it did not fail."""
    can_be_left_out: bool = True
    """Whether nothing in it is known to affect later tests."""


@dataclass(frozen=True, slots=True)
class Smaller:
    """The smaller recording."""

    left_out: int
    """Number of tests left out."""
    events: int
    """Number of events."""
    failed: int
    """Number of events up to the test's failure."""
    size: int
    """Size of the file."""


def make_smaller(recording: Recording, target: Path, *, until_failure: bool = False) -> Smaller | None:
    """Write to `target` the recording without the tests that its last one does not need; None: it needs all.

    With `until_failure` it ends at the test's failure, before pytest's report. Raises OSError, ReplaydbgError.
    """
    data = b"".join(recording.pieces("log"))
    assert recording.log_header is not None and recording.end is not None, recording.path
    recorded = RecordedEnd(recording.end.raw, str(recording.path))
    failed = recorded.failed
    items = _items(recording, data, failed)
    needed = _needed(items) if items else set()
    left_out = [item for number, item in enumerate(items, 1) if number not in needed]
    if not left_out or (until_failure and not items[-1].failed_at):
        return None
    dropped = sum(item.events for item in left_out)
    changes = _changes(data, items, left_out)
    events = recording.end.events
    if until_failure:
        changes[(items[-1].failed_at, len(data))] = b""
        events = failed
    log = spliced(data, {place: it for place, it in changes.items() if _is_kept(place, items, until_failure)})
    head = LogHeader(FORMAT, StopReason.NOT_STOPPED, len(log), events - dropped, recording.log_header.start_ns)
    end = recorded.without(dropped, events=events - dropped, began=items[-1].began)
    if until_failure:
        end["reason"] = "the test had failed there"
    size = write_with_log(recording, target, pack_log_header(head) + log[LOG_HEADER:], end)
    return Smaller(len(left_out), events - dropped, max(0, failed - dropped), size)


def _is_kept(place: tuple[int, int], items: list[MarkedTest], until_failure: bool) -> bool:
    return not until_failure or place[0] <= items[-1].failed_at


def _items(recording: Recording, data: bytes, failed: int) -> list[MarkedTest]:
    """Return the tests in the log, in order; the last one failed after `failed` events."""
    pieces = iter([data[LOG_HEADER:]])
    stream = RawStream(pieces, total=len(data), stored=recording.size("log"), gates=recording.header.gates)
    items: list[MarkedTest] = []
    is_doing = is_asking = False
    at = LOG_HEADER
    for raw, record in stream.records():
        begin, at = at, at + len(raw)
        if isinstance(record, Control) and record.kind is ControlKind.MARK:
            mark = read_mark(record.name or "").content
            if isinstance(mark, TestAsked):
                if mark.is_worker:
                    return []  # a thread receives its next order in the middle of the tests
                items.append(MarkedTest(mark.needs, mark.random, began=stream.crossings))
                is_asking, is_doing = True, False
            elif isinstance(mark, Reports):
                is_doing = False
                if mark.has_report and items:
                    items[-1].reports.append(mark.report)
            elif isinstance(mark, ReportsEnded):
                is_doing = not mark.is_last
            elif isinstance(mark, PhaseRaised) and items and stream.crossings == failed and not items[-1].failed_at:
                items[-1].failed_at = at
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
            item.own.append((begin, at, record is None))
            item.events += isinstance(record, Event)
            if isinstance(record, Control) and record.kind in _NEVER:
                item.can_be_left_out = False
    return items


def _needed(items: list[MarkedTest]) -> set[int]:
    """Return the numbers of the tests that the last one needs, with its own, and those before a test that must stay."""
    stays = [n for n, item in enumerate(items, 1) if not item.can_be_left_out or None in item.reports]
    needed = {len(items), *range(1, max((n for n in stays if n < len(items)), default=0) + 1)}
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
        elif is_behind:
            changes[item.question] = _answer(data, item, {"random": state})
            is_behind = False
    return changes


def _answer(data: bytes, item: MarkedTest, answer: dict[str, object]) -> bytes:
    """Return the event of the question with another answer."""
    begin, end = item.question
    return with_outcome(data[begin:end], [json.dumps(answer)], has_arguments=item.has_arguments)
