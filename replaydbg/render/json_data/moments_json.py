"""Moments and frames as JSON data."""

from __future__ import annotations

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Frame, Moment, Raised
from replaydbg.render.json_data.json_object import JsonObject
from replaydbg.render.texts import moment_text


def moment_facts(session: Session, count: int, moment: Moment) -> JsonObject:
    """Return a moment as data."""
    return {"moment": moment_text(moment), "event": moment.event, "step": moment.step, "count": count}


def frame_facts(frame: Frame) -> JsonObject:
    """Return a frame as data."""
    return {"file": frame.file, "line": frame.line, "function": frame.function}


def raised_facts(session: Session, raised: Raised, *, is_own: bool) -> JsonObject:
    """Return an exception of the run as data; `is_own`: the user's own code raised it."""
    return {
        **moment_facts(session, raised.count, session.index.moment(raised.count)),
        "thread": raised.lane,
        "type": raised.type,
        "types": list(raised.lineage),
        "message": raised.message,
        "file": raised.file or None,
        "line": raised.line or None,
        "function": raised.function or None,
        "is_own": is_own,
        "is_again": raised.is_again,
        "ended_program": raised.is_uncaught,
    }
