"""The results of recording and of replaying a run as JSON data."""

from __future__ import annotations

from replaydbg.log.group import process_facts
from replaydbg.record.result import RecordResult
from replaydbg.render.json_data.json_object import JsonObject
from replaydbg.replay.result import ReplayResult


def record_facts(result: RecordResult) -> JsonObject:
    """Return the result of recording a run as data."""
    return {
        "path": str(result.path),
        "status": result.status,
        "events": result.events,
        "size": result.size,
        "notes": result.notes,
        "reason": result.reason,
        "problem": result.problem,
        "snapshots": result.snapshots,
        "processes": None if result.group is None else [process_facts(each) for each in result.group.processes],
        "not_recorded": dict(result.not_recorded),
        "dropped": result.is_dropped,
    }


def replay_facts(result: ReplayResult) -> JsonObject:
    """Return the result of a replay as data."""
    return {
        "status": result.status,
        "events": result.events,
        "ended_early": result.ended_early,
        "is_whole": result.is_whole,
        "missing": list(result.missing),
        "uncovered": list(result.uncovered),
        "mixed": result.is_mixed,
        "drift": result.drift or None,
        "unsure": result.unsure or None,
        "unsure_place": result.unsure_place or None,
        "divergence": result.divergence.as_dict() if result.divergence is not None else None,
        "stack": list(result.stack),
        "lines_since_event": result.clock.lines_since_event if result.clock is not None else None,
    }
