"""The data of the whole run, as the timeline shows it."""

from __future__ import annotations

import shlex
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from replaydbg.debugger.assertions import Assertion, assertion_of_test
from replaydbg.debugger.exception_types import is_by_own_code
from replaydbg.errors import AskFailed, UsageError
from replaydbg.events.show import printable
from replaydbg.heap.snapshot import Taken
from replaydbg.render import texts
from replaydbg.render.source.run_extent import extent_of
from replaydbg.replay.clock import Moment
from replaydbg.tui.view_model import FailedWhere, OutputLine, Overview, TimelineMark
from replaydbg.tui.worker.scene_builder import short_place

if TYPE_CHECKING:
    from replaydbg.debugger import Session
    from replaydbg.debugger.session_results import Here
    from replaydbg.debugger.source.own_code import OwnCode
    from replaydbg.engine.reports import Where

BINS = 1024
"""Number of stretches into which the run is divided: no terminal has more columns."""

MOST_OUTPUT = 50_000
MOST_EXCEPTIONS = 2000


def overview(session: Session, words: tuple[str, ...], own_code: OwnCode, *, process: str = "") -> Overview:
    """Return the data of the whole run; `words` are the commands of the prompt, `process` its number in the group."""
    index = session.index
    failure = session.failure
    # Just opened, the session is at the failure; a process of a group may have been left elsewhere.
    is_there = failure is not None and session.here.why == "exception"
    failed = session.here if is_there else session.look_at(failure.count) if failure is not None else None
    claim = _claim(session) if is_there else None
    first, last = extent_of(session)
    lines, left_out = _output(session)
    return Overview(
        name=texts.recording_name(session),
        command=printable(session.test.nodeid if session.test is not None else shlex.join(session.header.command)),
        python=session.header.python.version,
        ended=printable(index.ended),
        first=first,
        first_event=index.moment(first).event,
        last=max(last, first + 1),
        events=index.events,
        total=index.total,
        density=density(session, first, last),
        exceptions=tuple(_exceptions(session, first, own_code)),
        failure=TimelineMark(failure.count, printable(failure.text)) if failure is not None else None,
        failed_at=tuple((each.file, each.line) for each in failed.stack) if failed is not None else (),
        failed_where=_failed_where(session, failed) if failed is not None else None,
        snapshots=_snapshots(session),
        output=lines,
        output_left_out=left_out,
        limitation=session.limitations.text,
        words=words,
        claim=claim,
        process=process,
    )


def _failed_where(session: Session, failed: Where | Here) -> FailedWhere:
    top = failed.top
    return FailedWhere(
        place=short_place(session, top.file, top.line, top.function) if top is not None else "",
        moment=texts.moment_text(session.index.moment(failed.count)),
        percent=texts.percent_text(failed.count, session.index.total),
        lane=printable(texts.lane_text(failed.lane, failed.lanes)),
    )


def _claim(session: Session) -> Assertion | None:
    try:
        return assertion_of_test(session)
    except (UsageError, AskFailed):
        return None


def density(session: Session, first: int, last: int) -> tuple[int, ...]:
    """Return the number of events in each of BINS stretches between two lines of the run."""
    width = max(last - first + 1, 1)
    edges = [bisect_left(session.index.starts, first + width * each // BINS) for each in range(BINS + 1)]
    return tuple(after - before for before, after in pairwise(edges))


def _exceptions(session: Session, first: int, own_code: OwnCode) -> Iterator[TimelineMark]:
    """Yield the exceptions that the program's own code raised, without those that end loops.

    Libraries mostly handle what they raise, and raise much.
    """
    raised = (each for each in session.index.raised if each.count >= first and each.type not in texts.SILENT)
    own = [each for each in raised if is_by_own_code(each, own_code)]
    step = max(len(own) // MOST_EXCEPTIONS, 1)
    for each in own[::step]:
        yield TimelineMark(each.count, printable(each.text))


def _snapshots(session: Session) -> tuple[TimelineMark, ...]:
    found = []
    for each in session.heap.taken:
        count = session.index.count(Moment(min(each.event, session.index.events), 1))
        found.append(TimelineMark(count, snapshot_text(each)))
    return tuple(sorted(found, key=lambda each: each.count))


def snapshot_text(taken: Taken) -> str:
    """Return a snapshot's number and name."""
    return f"#{taken.number}" + (f" {printable(taken.name)}" if taken.name else "")


def _output(session: Session) -> tuple[tuple[OutputLine, ...], int]:
    """Return the program's lines, as `@out:N` counts them: a moment refers to the line that its newline ends."""
    lines: list[OutputLine] = []
    begun = ""
    for each in session.index.output:
        parts = each.data.decode("utf-8", "replace").split("\n")
        for part in parts[:-1]:
            lines.append(OutputLine(len(lines) + 1, printable(begun + part), each.stream, each.line))
            begun = ""
        begun += parts[-1]
        last = each
    if begun:
        lines.append(OutputLine(len(lines) + 1, printable(begun), last.stream, last.line))
    left_out = max(len(lines) - MOST_OUTPUT, 0)
    return tuple(lines[left_out:]), left_out
