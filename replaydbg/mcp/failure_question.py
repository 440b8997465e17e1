"""The first question about a recording: how did it fail?"""

from __future__ import annotations

import time
from typing import Any

from replaydbg.debugger.long_work import OutOfTime
from replaydbg.debugger.source.statements import assertion_in_line
from replaydbg.errors import AskFailed, UsageError
from replaydbg.log.reader import open_recording
from replaydbg.mcp.answers import AgentAnswer, NextQuestion
from replaydbg.mcp.moment_questions import add_moment, add_write, line_here, questions_about
from replaydbg.mcp.open_recordings import OpenRecording
from replaydbg.render.recording_text import recording_lines

LABELS = ("command", "directory", "created", "python", "ended", "stopped", "reason")
"""What is shown of a recording's header and end."""

MOST_WRITES = 3
"""The most values whose last write is shown."""

WITHIN = 10.0
"""Seconds after which no further writes are searched for."""

OUTPUT_LINES = 8


def failure(found: OpenRecording, answer: AgentAnswer, given: dict[str, Any]) -> None:
    """Show how a recorded program failed, or that it did not."""
    found.go_to(None, None, None)
    with open_recording(found.session.path) as recording:
        shown = [f"{label}: {text}" for label, text in recording_lines(recording, with_values=False) if label in LABELS]
    answer.add("program", shown)
    if found.session.failure is None:
        answer.add("outcome", ["No exception ended this run. What follows is its end."])
    add_moment(found, answer)
    _add_assertion(found, answer, given)
    _add_writes(found, answer, given)
    answer.add("output", found.words(f"output {OUTPUT_LINES}"), keeps="tail")


def _add_assertion(found: OpenRecording, answer: AgentAnswer, given: dict[str, Any]) -> None:
    """Propose to search for the line after which what the failing line claims was false."""
    view = found.view
    if found.session.failure is None or not view.frames():
        return
    at = view.place()
    claim = assertion_in_line("\n".join(found.session.sources.lines(at.file)), at.line)
    if not claim:
        return
    answer.add("assertion", [f"false: {claim}"])
    wanted = {} if found.session.test is not None else {"check": claim}
    if wanted and at.function != "<module>":
        wanted["frame"] = at.function
    answer.next.append(NextQuestion("bisect", {"recording": given["recording"], **wanted}))


def _add_writes(found: OpenRecording, answer: AgentAnswer, given: dict[str, Any]) -> None:
    """Show which lines wrote the values that the failing line reads; propose the values that those came from."""
    number, followed, until = 0, "", time.monotonic() + WITHIN
    for name in line_here(found):
        left = until - time.monotonic()
        if number == MOST_WRITES or left <= 0:
            answer.next += questions_about(found, given, [name])
            continue
        try:
            with found.session.work.limited(left):
                write = found.session.run.why(name, **found.view.at)
        except OutOfTime:
            answer.left_out.append(f"the last write of {name}: not found within {WITHIN:.0f} s")
            continue
        except (AskFailed, UsageError):
            continue  # a function, or what cannot be tracked
        if write.moment is not None:
            add_write(found, answer, given, write, f"write of {name}")
            number += 1
            followed = followed or name
    if followed:
        watched = {"recording": given["recording"], "expression": followed, "at": answer.at}
        frame = {"frame": found.view.frame} if found.view.frame else {}
        answer.next.insert(1, NextQuestion("watch", {**watched, **frame}))
