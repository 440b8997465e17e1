"""The command on what the process holds here: open descriptors, locks, timers, children."""

from __future__ import annotations

from replaydbg.commands.view import View
from replaydbg.commands.vocabulary import PromptCommand
from replaydbg.errors import UsageError
from replaydbg.log.reader import Recording, open_recording
from replaydbg.render.resources_text import resources_tables, unclosed_tables
from replaydbg.render.tables import Table, drawn
from replaydbg.resources.follow import ResourceHistory
from replaydbg.resources.kinds import EventNumber, Resources
from replaydbg.resources.log_moments import event_of
from replaydbg.resources.unclosed import unclosed

USAGE = "usage: resources [MOMENT [MOMENT]]"


def _resources(view: View, rest: str) -> None:
    words = rest.split()
    if len(words) > 2:
        raise UsageError(f"{USAGE} (got {len(words)} moments)")
    for line in drawn(tables(view, words), width=view.screen.columns).splitlines():
        view.screen.line(line)


def tables(view: View, moments: list[str]) -> list[Table]:
    """Return the resources here, at a moment, or what was opened between two and not closed."""
    cwd = view.session.header.cwd
    with open_recording(view.session.path) as recording:
        events = sorted(_event(view, recording, each) for each in moments) or [_here(view)]
        history = ResourceHistory(recording)
        found = [history.at(event) for event in events]
    return unclosed_tables(unclosed(*found), cwd) if len(found) == 2 else resources_tables(found[0], cwd)


def resources_here(view: View) -> Resources:
    """Return the resources after the last event before this position."""
    with open_recording(view.session.path) as recording:
        return ResourceHistory(recording).at(_here(view))


def _here(view: View) -> EventNumber:
    if view.here.is_changed:
        raise UsageError("Resources are those of the recorded run, and this one was changed: `seek` returns to it.")
    return view.here.moment.event


def _event(view: View, recording: Recording, text: str) -> EventNumber:
    event = event_of(recording, text)
    return event if event is not None else view.session.index.moment(view.session.count_of(text)).event


COMMANDS = (
    PromptCommand(
        ("resources",),
        "[MOMENT [MOMENT]]",
        "show open descriptors, locks, timers and children here, or what was not closed between two moments",
        _resources,
        completes="moments",
    ),
)
