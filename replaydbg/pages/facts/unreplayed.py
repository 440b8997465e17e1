"""What a recording shows without a replay: facts about the run, and its last events."""

from __future__ import annotations

from collections import deque
from pathlib import Path

from replaydbg.errors import ReplaydbgError, clause
from replaydbg.events.records import Event
from replaydbg.events.show import show_status
from replaydbg.log.group import group_directory, process_number
from replaydbg.log.reader import Recording, open_recording
from replaydbg.pages.facts.group_facts import group_facts
from replaydbg.pages.facts.page_facts import GroupFacts, PageFacts
from replaydbg.pages.facts.recording_facts import opening_commands, run_facts
from replaydbg.render.event_rows import entry_row

LAST = 40
"""Number of events that are shown."""
_MOST_READ = 1_000_000
"""Number of events of a log that is read as a whole: its last events cannot be found in another way."""


def unreplayed(path: Path, name: str, reason: ReplaydbgError) -> PageFacts:
    """Return the page of a recording that cannot be replayed here; `reason`: why. Raises what reading it raises."""
    with open_recording(path) as recording:
        end = recording.end
        test = end.raw.get("test") if end is not None else None
        nodeid = test.get("nodeid") if isinstance(test, dict) else None
        facts = run_facts(recording, nodeid=str(nodeid) if nodeid else "")
        rows = _last_events(recording)
        title = "The recording is not sealed"
        if end is not None:
            title = end.exception or f"The program ended: {show_status(end.status)}"
    warning = f"Source, values and stack are missing, because nothing can be replayed here: {clause(str(reason))}."
    return PageFacts(
        kind="Recording",
        title=title,
        message="",
        name=name,
        facts=facts,
        warnings=(warning,),
        events=rows,
        group=_group(path),
        commands=tuple(opening_commands(name)),
    )


def _last_events(recording: Recording) -> tuple[tuple[str, ...], ...]:
    log = recording.log_header
    if log is None:
        return ()
    first = max(log.crossings - LAST + 1, 1)
    if first > _MOST_READ:
        return ()
    found = deque(recording.events(first=first, controls=False), maxlen=LAST)
    return tuple(entry_row(each) for each in found if isinstance(each, Event))


def _group(path: Path) -> GroupFacts | None:
    directory = group_directory(path)
    return group_facts(directory, process_number(path), None) if directory is not None else None
