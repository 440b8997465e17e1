"""Moments and frames as JSON data."""

from __future__ import annotations

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Frame, Moment
from replaydbg.render.json_data.json_object import JsonObject
from replaydbg.render.texts import moment_text


def moment_facts(session: Session, count: int, moment: Moment) -> JsonObject:
    """Return a moment as data."""
    return {"moment": moment_text(moment), "event": moment.event, "step": moment.step, "count": count}


def frame_facts(frame: Frame) -> JsonObject:
    """Return a frame as data."""
    return {"file": frame.file, "line": frame.line, "function": frame.function}
