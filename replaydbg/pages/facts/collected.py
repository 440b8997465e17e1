"""Collect what a page shows of a session, at its position; the session does not move."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from replaydbg.debugger import Session
from replaydbg.errors import ReplaydbgError, clause
from replaydbg.groups.group_session import GroupSession
from replaydbg.log.group import GroupProcess, group_directory, process_number, read_group
from replaydbg.log.reader import open_recording
from replaydbg.pages.facts.call_chart import call_chart
from replaydbg.pages.facts.group_facts import group_facts, recordings_of
from replaydbg.pages.facts.heap_course import heap_course
from replaydbg.pages.facts.hidden_texts import HiddenTexts
from replaydbg.pages.facts.output_around import printed_around
from replaydbg.pages.facts.page_facts import (
    CallChart,
    GroupFacts,
    Instant,
    PageFacts,
    PrintedPart,
    StackFrame,
    Timeline,
    WriteStep,
)
from replaydbg.pages.facts.recording_facts import opening_commands, run_facts
from replaydbg.pages.facts.run_timeline import timeline_of
from replaydbg.pages.facts.stack_frames import FrameReader
from replaydbg.pages.facts.work_budget import WorkBudget
from replaydbg.pages.facts.write_chains import WriteFinder
from replaydbg.render import texts

SECONDS = 20.0
"""Time that the parts of a page take at most, besides opening the recording."""


def hidden_texts_of(path: Path) -> HiddenTexts:
    """Return what masks the secrets of a recording; of one in a group, those of all its processes."""
    directory = group_directory(path)
    return HiddenTexts(recordings_of(directory) if directory is not None else [path])


class ShownRecording(NamedTuple):
    """The recording that a page is about."""

    path: Path
    name: str
    """As commands take it."""
    group: Path | None
    """The directory of the group that it belongs to."""
    process: int
    """Its number in the group."""
    is_process: bool
    """Whether it is the group's own recording of this process, with the same events."""
    more: tuple[tuple[str, str], ...] = ()
    """Further facts about it: labels and texts."""


def recording_of(session: Session, name: str) -> ShownRecording:
    """Return the recording that a session has open."""
    directory = group_directory(session.path)
    number = process_number(session.path) if directory is not None else 0
    return ShownRecording(session.path, name, directory, number, directory is not None)


def collected(session: Session, shown: ShownRecording, hidden: HiddenTexts, *, seconds: float = SECONDS) -> PageFacts:
    """Return the page of a session at its position. Raises Cancelled.

    The session may be of a longer recording that begins with the shown one.
    """
    return _Collector(session, shown, hidden, WorkBudget(seconds)).page()


class _Collector:
    """One page."""

    def __init__(self, session: Session, shown: ShownRecording, hidden: HiddenTexts, budget: WorkBudget) -> None:
        session.await_pass()
        self._session, self._shown, self._hidden, self._budget = session, shown, hidden, budget
        self._is_failure = session.failure is not None and session.here.count == session.failure.count

    def page(self) -> PageFacts:
        session, here, budget = self._session, self._session.here, self._budget
        is_failure = self._is_failure
        reader = FrameReader(session, self._hidden)
        frames: tuple[StackFrame, ...] = budget.part("stack", reader.read, ())
        shown = reader.shown() if frames else 0
        writes, writes_note = self._writes(shown) if frames and is_failure else ((), "")
        timeline: Timeline | None = budget.part("timeline", self._timeline, None)
        printed: PrintedPart | None = budget.part("output", self._printed, None)
        group: GroupFacts | None = budget.part("processes", self._group, None)
        calls = budget.part("calls", lambda: self._calls(timeline), None) if timeline is not None else None
        heap = (
            budget.part("heap growth", lambda: heap_course(session, timeline.first, here.count), None)
            if timeline is not None
            else None
        )
        title, message = self._title(is_failure)
        frame = next((each for each in frames if each.number == shown), None)
        return PageFacts(
            kind="Failure" if is_failure else "End" if here.why == "end" else "Moment",
            title=title,
            message=message,
            name=self._shown.name,
            facts=self._facts(),
            place=self._place(frame),
            instant=Instant(texts.moment_text(here.moment), max(here.count, 1)),
            warnings=tuple(self._warnings(is_failure)),
            frames=frames,
            more_frames=reader.depth - len(frames),
            shown_frame=shown,
            exceptions=budget.part("exceptions", self._exceptions, ()),
            writes=writes,
            writes_note=writes_note,
            printed=printed,
            timeline=timeline,
            calls=calls,
            heap=heap,
            group=group,
            commands=tuple(
                opening_commands(
                    self._shown.name,
                    place=(frame.file, frame.line) if frame is not None else None,
                    expression=next((each.expression for each in writes if each.instant is not None), ""),
                    is_failure=is_failure,
                    is_test=session.test is not None,
                )
            ),
        )

    def _title(self, is_failure: bool) -> tuple[str, str]:
        session = self._session
        if is_failure and session.failure is not None:
            first, _, rest = session.failure.text.partition("\n")
            return first, session.failure.text if rest else ""
        if session.here.why == "end":
            ended = session.index.ended
            return f"{ended[:1].upper()}{ended[1:]}", ""
        return texts.here_text(session, session.here), ""

    def _facts(self) -> tuple[tuple[str, str], ...]:
        nodeid = self._session.test.nodeid if self._session.test is not None else ""
        with open_recording(self._shown.path) as recording:
            return (*run_facts(recording, nodeid=nodeid), *self._shown.more)

    def _place(self, frame: StackFrame | None) -> str:
        here = self._session.here
        thread = texts.lane_text(here.lane, here.lanes)
        return f"{frame.file}:{frame.line} in {frame.function}, {thread}" if frame is not None else thread

    def _warnings(self, is_failure: bool) -> list[str]:
        session, ended = self._session, self._session.index.ended
        found = []
        if session.has_diverged or (is_failure and session.test is None and "recording ends here" in ended):
            found.append(f"{ended[:1].upper()}{ended[1:]}.")
        elif not is_failure and session.failure is None and session.here.why == "end":
            found.append("No exception ended the program, so this page shows its end.")
        if session.limitations.doubt:
            found.append(session.limitations.doubt)
        return [*found, *self._budget.notes]

    def _exceptions(self) -> tuple[tuple[str, str], ...]:
        return self._session.ask.exceptions()

    # ---- parts ----

    def _writes(self, shown: int) -> tuple[tuple[WriteStep, ...], str]:
        group = GroupSession(self._session) if self._shown.is_process else None
        finder = WriteFinder(self._session, self._budget, group)
        found: list[WriteStep] = []
        note = ""
        try:
            found += finder.steps(shown)
        except ReplaydbgError as error:
            note = f"The search for writes ended early: {clause(str(error))}."
        if finder.is_cut:
            note = "There was no time for further writes: `replaydbg why` finds them."
        return tuple(found), note

    def _timeline(self) -> Timeline:
        return timeline_of(self._session, self._children())

    def _calls(self, timeline: Timeline) -> CallChart | None:
        names = {each.lane: each.name for each in timeline.bars if not each.is_process}
        return call_chart(self._session, timeline.first, timeline.last, names)

    def _children(self) -> Sequence[GroupProcess]:
        if self._shown.group is None or not self._shown.is_process:
            return ()
        processes = read_group(self._shown.group).processes
        return [each for each in processes if each.parent == self._shown.process and each.event]

    def _printed(self) -> PrintedPart:
        # Of the line that fails, what it prints is mostly the traceback.
        count = self._session.here.count - self._is_failure
        return printed_around(self._session, count, self._hidden)

    def _group(self) -> GroupFacts | None:
        if self._shown.group is None:
            return None
        event = self._session.here.moment.event if self._shown.is_process else None
        return group_facts(self._shown.group, self._shown.process, event)
