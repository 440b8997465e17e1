"""The result of futures as JSON data."""

from __future__ import annotations

from replaydbg.futures.futures_text import FuturesReport, next_command
from replaydbg.futures.grouping import FutureGroup
from replaydbg.render.json_data.json_object import JsonObject


def futures_facts(report: FuturesReport) -> JsonObject:
    """Return the result as data."""
    found = report.found
    low, high = found.share.bounds
    return {
        "recording": found.name,
        "event": found.event,
        "futures": found.count,
        "failed": found.share.failed,
        "passed": found.share.decided - found.share.failed,
        "inconclusive": found.count - found.share.decided,
        "share": {"low": low, "high": high, "confidence": 0.95},
        "is_fixed": found.is_fixed,
        "seconds": round(found.seconds, 3),
        "replay_seconds": round(found.replay_seconds, 3),
        "next": list(next_command(report)) or None,
        "groups": [_group_facts(each, report) for each in found.groups],
    }


def _group_facts(group: FutureGroup, report: FuturesReport) -> JsonObject:
    exception = group.example.exception
    place = exception.place if exception is not None else None
    kept = [report.names[each.seed] for each in group.futures if each.seed in report.names]
    return {
        "verdict": group.verdict.value,
        "ending": group.ending,
        "count": len(group.futures),
        "seeds": [each.seed for each in group.futures],
        "outputs": group.outputs,
        "last_line": group.last_line,
        "status": group.example.status,
        "is_deadlock": group.example.is_deadlock,
        "exception": exception.type if exception is not None else None,
        "message": exception.text if exception is not None else None,
        "file": place.file if place is not None else None,
        "line": place.line if place is not None else None,
        "recordings": kept,
        "open": ["replaydbg", "debug", kept[0]] if kept else None,
    }
