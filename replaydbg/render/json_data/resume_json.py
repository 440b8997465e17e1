"""The plan of a resumption as JSON data."""

from __future__ import annotations

from collections.abc import Iterable

from replaydbg.render.json_data.json_object import JsonObject
from replaydbg.resume.findings import Finding
from replaydbg.resume.plan import Plan, RecoveryCost
from replaydbg.resume.power_loss.recovered_files import Leftover
from replaydbg.resume.settle import call_text


def leftover_facts(leftovers: Iterable[Leftover]) -> list[JsonObject]:
    """Return the files that are truncated as data."""
    return [{"path": each.path, "size": each.size, "found": each.found} for each in leftovers]


def recovery_facts(recovery: RecoveryCost, seconds: float) -> JsonObject:
    """Return what is replayed, and the expected time, as data."""
    return {
        "events": recovery.events_left,
        "cpu_seconds": recovery.cpu_ms_left / 1000,
        "log_bytes": recovery.log_bytes,
        "seconds": round(seconds, 3),
    }


def plan_facts(plan: Plan) -> JsonObject:
    """Return the plan as data."""
    return {
        "recording": plan.name,
        "event": plan.event,
        "thread": plan.thread,
        "resources": [
            {
                "kind": row.kind,
                "fate": row.fate.value,
                "text": row.text,
                "reason": row.reason or None,
                "descriptors": list(row.numbers),
            }
            for row in plan.rows
        ],
        "resumed_as": plan.continuation.name if plan.continuation is not None else None,
        "sources": [{"path": each.path, "change": "deleted" if each.is_gone else "changed"} for each in plan.sources],
        "differences": list(plan.differences),
        "cut_off": leftover_facts(plan.leftovers),
        "in_flight": [_call_facts(each) for each in plan.in_flight],
        "done_after": [
            {"event": each.event, "call": each.call, "text": each.text, "place": each.place} for each in plan.past.acts
        ],
        "done_after_count": plan.past.act_count,
        "logging_stopped": plan.stopped or None,
        "images": [
            {"path": each.path, "event": each.event, "bytes": each.size, "unusable": each.unfit or None}
            for each in plan.images or ()
        ],
        "recovery": recovery_facts(plan.recovery, plan.recovery.seconds),
        "stood_seconds": round(plan.stood_ns / 1e9, 3),
    }


def _call_facts(finding: Finding) -> JsonObject:
    call = finding.call
    return {
        "thread": call.thread,
        "call": call.call,
        "text": call_text(call),
        "bytes": call.data_length,
        "decision": finding.verdict.value,
        "reason": finding.reason,
        "file": call.file or None,
        "line": call.line if call.file else None,
        "function": call.function or None,
    }
