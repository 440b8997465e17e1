"""The verdict on edited code as JSON data."""

from __future__ import annotations

from replaydbg.events.verdict import Verdict
from replaydbg.render.json_data.json_object import JsonObject
from replaydbg.replay.edited_code import CodeVerdict
from replaydbg.replay.ending import Liberty, Outcome


def verdict_facts(verdict: CodeVerdict) -> JsonObject:
    """Return the verdict as data."""
    result = verdict.result
    return {
        "verdict": "cannot test" if verdict.verdict is Verdict.UNDECIDED else verdict.verdict.value,
        "sentence": verdict.sentence,
        "recorded": _outcome(verdict.recorded),
        "now": _outcome(verdict.now),
        "cannot_test": result.cannot_test,
        "check": {"verdict": result.check.verdict, "error": result.check.error} if result.check is not None else None,
        "changed": list(verdict.changed),
        "deviations": [_deviation_facts(each) for each in result.liberties],
        "deviation_counts": result.liberty_counts,
    }


def _outcome(outcome: Outcome | None) -> JsonObject | None:
    if outcome is None:
        return None
    exception = outcome.exception
    return {
        "status": outcome.status,
        "exception": exception.type if exception is not None else None,
        "text": exception.text if exception is not None else None,
        "file": exception.place.file if exception is not None and exception.place is not None else None,
        "line": exception.place.line if exception is not None and exception.place is not None else None,
    }


def _deviation_facts(each: Liberty) -> JsonObject:
    return {
        "kind": each.kind,
        "event": each.event or None,
        "recorded": each.recorded,
        "asked": each.asked,
        "detail": each.detail,
        "thread": each.lane,
        "file": each.file,
        "line": each.line,
        "function": each.function,
    }
