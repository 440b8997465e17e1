"""The process that examines kept recordings: does a replay agree, and who wrote the values in the failing lines?"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from replaydbg.debugger import Session
from replaydbg.debugger.assertions import assertion_of_test, bisect_assertion, frame_of_test, was_true
from replaydbg.debugger.session_results import LastWrite, Variable
from replaydbg.debugger.source.statements import names_in_line, what_has
from replaydbg.engine.reports import Frame
from replaydbg.errors import ReplaydbgError, UsageError
from replaydbg.log.group import GROUP
from replaydbg.pytest_plugin.examination.minimize import KeptFailure
from replaydbg.pytest_plugin.examination.shared_replay import SharedReplay
from replaydbg.pytest_plugin.shared import shared_names
from replaydbg.pytest_plugin.shared.results import Examination, ExaminedLine, Written, Wrong, shortened
from replaydbg.render import texts

_NO_DATA = ("module", "type", "function", "method", "builtin_function_or_method")
"""Types of values that imports and definitions write, whose writes are of no interest."""
_CLASSES = ("<class '", "<enum '", "<flag '")
"""Prefixes of the texts of classes, whatever their metaclasses are."""


PAGE_SECONDS = 4.0
"""Seconds that a page may take."""


def main(bisects: str = "", pages: str = "") -> None:
    """Examine the recordings whose paths are on standard input, one per line; print one JSON object per result."""
    os.nice(5)  # the tests may still be running
    paths = [Path(json.loads(line)) for line in sys.stdin]
    for number, found in examined(paths, bisects=bool(bisects), pages=bool(pages)):
        sys.stdout.write(ExaminedLine(number, found).as_text() + "\n")
        sys.stdout.flush()


def examined(
    recordings: Sequence[Path], *, bisects: bool = False, pages: bool = False
) -> Iterator[tuple[int, Examination]]:
    """Yield the results, one after the other, each with the index of its recording; all are of one session."""
    numbers = {path: number for number, path in enumerate(recordings)}
    shared = SharedReplay()
    kept = []
    for number, path in enumerate(recordings):
        try:
            kept.append(KeptFailure(path))
        except (ReplaydbgError, OSError) as error:
            yield number, Examination(verified=False, verification=str(error))
    for each in shared.replays(kept):
        number = numbers[each.kept.path]
        yield number, each.found
        if each.session is not None:
            found = each.found
            for more in _explained(each.session, bisects=bisects):
                found = found.with_later(more)
                yield number, more
            if pages:
                yield number, _with_page(each.session, each.kept.path, found)


def _with_page(session: Session, recording: Path, found: Examination) -> Examination:
    """Write the page of a session whose position is the failure; `found`: what is known of it."""
    # Imported here: most sessions make no pages.
    from replaydbg.pages.facts.collected import ShownRecording
    from replaydbg.pages.making import page_of_session
    from replaydbg.store.private import write_private

    here = Path.cwd()
    name = str(recording.relative_to(here) if recording.is_relative_to(here) else recording)
    group = recording.with_name(f"{shared_names.PROCESSES}{GROUP}")
    more = [("replay", "verified: the whole replay matched" if found.verified else f"differed: {found.verification}")]
    if found.wrong is not None:
        wrong = found.wrong
        more += [("became false", f"{wrong.what}: after {wrong.moment}  {wrong.where}  {wrong.source}")]
        more += [("", each) for each in wrong.values]
    shown = ShownRecording(recording, name, group if group.is_dir() else None, 1, is_process=False, more=tuple(more))
    try:
        data = page_of_session(session, shown, seconds=PAGE_SECONDS)
        write_private(recording.with_name(shared_names.PAGE), data)
    except ReplaydbgError as error:
        return Examination(no_page=str(error))
    except OSError as error:
        return Examination(no_page=error.strerror or str(error))
    return Examination(page=shared_names.PAGE)


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
            value=shortened(value.text if value is not None else last.after),
            where=texts.place_text(session, last.file, last.line, last.function),
            source=shortened(last.source),
            moment=texts.moment_text(last.moment),
        )


def _last_write(session: Session, name: str, number: int) -> LastWrite | None:
    """Return the last write of a name, or of its container if it cannot be followed itself."""
    while name:
        try:
            found = session.run.why(name, number, with_origins=False)
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
        source=shortened(culprit.source),
        moment=texts.moment_text(culprit.moment),
        values=tuple(f"{each.source}  {shortened(each.before)} -> {shortened(each.after)}" for each in changed[:3]),
    )


def _source(session: Session, frame: Frame) -> str:
    return "\n".join(session.sources.lines(frame.file))
