"""`--at` of commands that let a program go on: it goes on at an event, not between two lines."""

from __future__ import annotations

from pathlib import Path

from replaydbg.errors import UsageError
from replaydbg.log.reader import open_recording
from replaydbg.resources.log_moments import event_of


def event_before(text: str, path: Path) -> int:
    """Return the event before which the program goes on. Raises UsageError, NoSuchMoment."""
    if text.isascii() and text.isdigit() and int(text) >= 1:
        return int(text)
    event = None
    if text.startswith("@"):
        with open_recording(path) as recording:
            event = event_of(recording, text)
    if event is None:
        # A program goes live at a call. Moments at lines would need a replay of their own to find the next call.
        known = "an event from 1 on, @start, @end, @t+SECONDS, or a snapshot such as @#3"
        raise UsageError(
            f"--at must be {known} (got {text!r}). A program goes live at an event; `replaydbg seek` prints the last "
            "one before any other moment."
        )
    return event + 1
