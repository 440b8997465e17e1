"""The process that examines a kept recording: does a replay agree, and who wrote the values in the failing line?"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from replaydbg.debugger import Session
from replaydbg.debugger.assertions import assertion_of_test, bisect_assertion, frame_of_test, was_true
from replaydbg.debugger.first_pass.run_index import index_path
from replaydbg.debugger.session_results import LastWrite, Variable
from replaydbg.debugger.source.statements import names_in_line, what_has
from replaydbg.engine.reports import Frame
from replaydbg.errors import ReplaydbgError, UsageError
from replaydbg.log.reader import open_recording
from replaydbg.pytest_plugin.examination.hidden_dependencies import other_values
from replaydbg.pytest_plugin.examination.minimize import Smaller, make_smaller
from replaydbg.pytest_plugin.shared.results import Examination, Written, Wrong
from replaydbg.render import texts
from replaydbg.replay.launcher import replay

_LONGEST = 200
_NO_DATA = ("module", "type", "function", "method", "builtin_function_or_method")
"""Types of values that imports and definitions write, whose writes are of no interest."""
_CLASSES = ("<class '", "<enum '", "<flag '")
"""Prefixes of the texts of classes, whatever their metaclasses are."""


def main(path: str, bisects: str = "") -> None:
    """Print a JSON object for each line, each with further results."""
    os.nice(5)  # the tests are still running
    for report in examined(Path(path), bisects=bool(bisects)):
        sys.stdout.write(report.as_text() + "\n")
        sys.stdout.flush()


def examined(recording: Path, *, bisects: bool = False) -> Iterator[Examination]:
    """Yield the results, one after the other."""
    smaller = recording.with_name(f"alone-{recording.name}")
    try:
        alone = without_others(recording, smaller)
        if alone.verified:
            with Session(smaller) as session:
                other = _other_values(session)
                if other is None:
                    _take_place(smaller, recording)
                    yield alone
                    yield from _explained(session, bisects=bisects)
                    return
            alone = Examination(leftovers=other)
    except (ReplaydbgError, OSError) as error:
        alone = Examination(leftovers=str(error))
    finally:
        for each in (smaller, index_path(smaller)):
            each.unlink(missing_ok=True)
    yield alone.with_later(verified(recording))
    try:
        with Session(recording) as session:
            yield from _explained(session, bisects=bisects)
    except ReplaydbgError as error:
        yield Examination(problem=str(error))


def _other_values(session: Session) -> str | None:
    """Return a value that differs from the time of the failure;

    None: there is none. Empty: this cannot be determined.
    """
    try:
        return "; ".join(other_values(session)) or None
    except ReplaydbgError:
        return ""  # for instance a failure without an exception: then leave nothing out, and report nothing


def _take_place(smaller: Path, recording: Path) -> None:
    """Replace the whole recording by the smaller one; a session uses its own name for it."""
    for source, target in ((smaller, recording), (index_path(smaller), index_path(recording))):
        link = source.with_name(f".{source.name}")
        link.unlink(missing_ok=True)
        if source.exists():
            os.link(source, link)
            link.replace(target)


def _explained(session: Session, *, bisects: bool) -> Iterator[Examination]:
    """Yield the answers of a session whose position is the failure."""
    try:
        number = frame_of_test(session)
        if number is None:
            return
        yield Examination(writes=tuple(writes(session, number)))
        wrong = bisected(session) if bisects else None
        if wrong is not None:
            yield Examination(wrong=wrong)
    except ReplaydbgError as error:
        yield Examination(problem=str(error))


def without_others(recording: Path, smaller: Path) -> Examination:
    """Write `smaller` without earlier tests that the last one does not need; return whether a replay agrees then.

    Returns an empty one if it needs all of them. Raises OSError, ReplaydbgError.
    """
    made, report, agreed = _made(recording, smaller, until_failure=False)
    if made is None:
        return Examination()
    if not report.verified and 0 < made.failed <= agreed:
        # What pytest does to report a failure depends on its memory of earlier ones.
        before = report
        made, report, _ = _made(recording, smaller, until_failure=True)
        if made is None or not report.verified or not _fails(smaller):
            report = before
    if made is None or not report.verified:
        return Examination(leftovers=report.verification)
    return replace(report, left_out=made.left_out, events=made.events, size=made.size)


def _made(recording: Path, target: Path, *, until_failure: bool) -> tuple[Smaller | None, Examination, int]:
    """Make the smaller recording; return the result of its replay, and the number of events at the end of that."""
    with open_recording(recording) as opened:
        made = make_smaller(opened, target, until_failure=until_failure)
    return (None, Examination(verified=False, verification=""), 0) if made is None else (made, *_replayed(target))


def _fails(recording: Path) -> bool:
    """Whether the test fails in a replay: a recording that ends there has no later events to compare."""
    with Session(recording) as session:
        # If its exception was not raised, a session opens at the line that failed in the recording.
        return session.failure is not None and session.failure in session.index.raised


def verified(recording: Path) -> Examination:
    """Replay it, and return whether the replay reached the end of the recording."""
    return _replayed(recording)[0]


def _replayed(recording: Path) -> tuple[Examination, int]:
    with open_recording(recording) as opened:
        events = opened.end.events if opened.end is not None else 0
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        result = replay(recording, stdout=null, stderr=null)
    except ReplaydbgError as error:
        return Examination(verified=False, verification=str(error)), 0
    finally:
        os.close(null)
    if result.divergence is not None:
        reason = str(result.divergence).partition("\n")[0]
        return Examination(verified=False, verification=reason), result.events
    if result.events < events:
        reason = f"it ended after {result.events:,} of {events:,} events"
        return Examination(verified=False, verification=reason), result.events
    return Examination(verified=True, verification=""), result.events


def writes(session: Session, number: int) -> Iterator[Written]:
    """Yield the last write of each name in a frame's line, with its present value; the session is at the failure."""
    frame = session.ask.stack()[number]
    names: dict[str, LastWrite] = {}
    for name in names_in_line(_source(session, frame), frame.line):
        found = _last_write(session, name, number)
        if found is not None:
            names.setdefault(found.expression, found)
    for name, found in names.items():
        last = found.content or found
        assert last.moment is not None, last
        value = _value(session, name, number)
        if value is not None and (value.type in _NO_DATA or value.text.startswith(_CLASSES)):
            continue
        yield Written(
            name=name,
            value=_short(value.text if value is not None else last.after),
            where=texts.place_text(session, last.file, last.line, last.function),
            source=_short(last.source),
            moment=texts.moment_text(last.moment),
        )


def _last_write(session: Session, name: str, number: int) -> LastWrite | None:
    """Return the last write of a name, or of its container if it cannot be followed itself."""
    while name:
        try:
            found = session.run.why(name, number)
        except ReplaydbgError:
            name = what_has(name)
            continue
        return replace(found, expression=name) if found.moment is not None else None
    return None


def _value(session: Session, name: str, number: int) -> Variable | None:
    with suppress(ReplaydbgError):
        return session.ask.evaluate(name, number).value
    return None


def bisected(session: Session) -> Wrong | None:
    """Return the line after which the failing line's assertion became false; None if it was false from the start."""
    try:
        claim = assertion_of_test(session)
    except UsageError:
        return None  # it is not an assertion
    found = bisect_assertion(session, claim)
    if found is None or found.culprit is None or not was_true(found):
        return None  # it was never true: the last writes of its names were reported already
    culprit = found.culprit
    changed = [each for each in culprit.values if each.before != each.after]
    return Wrong(
        what=found.predicate,
        where=texts.place_text(session, culprit.file, culprit.line, culprit.function),
        source=_short(culprit.source),
        moment=texts.moment_text(culprit.moment),
        values=tuple(f"{each.source}  {_short(each.before)} -> {_short(each.after)}" for each in changed[:3]),
    )


def _source(session: Session, frame: Frame) -> str:
    return "\n".join(session.sources.lines(frame.file))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
