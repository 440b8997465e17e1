"""The comparison of a recording's and a replay's tick traces as JSON data."""

from __future__ import annotations

from replaydbg.render.json_data.json_object import JsonObject
from replaydbg.render.trace_text import Traced
from replaydbg.trace.compare import InsideBoth, TraceDifference, TraceSide
from replaydbg.trace.trace_files import Kind


def trace_facts(found: Traced) -> JsonObject:
    """Return the result as data."""
    compared, difference = found.compared, found.difference
    return {
        "equal": found.is_equal,
        "recording": found.name if not found.is_equal else None,
        "ticks": compared.ticks,
        "events": compared.events,
        "threads": compared.lanes or None,
        "ending": compared.ending.name.lower(),
        "ended_early": found.result.ended_early,
        "drift": found.result.drift or None,
        "divergence": found.result.divergence.as_dict() if found.result.divergence is not None else None,
        "difference": _difference_facts(found, difference) if difference is not None else None,
        "inside": [_inside_facts(found, each) for each in found.insides],
    }


def _difference_facts(found: Traced, difference: TraceDifference) -> JsonObject:
    return {
        "tick": difference.tick,
        "event": difference.event,
        "recorded": _side_facts(found, difference.recorded),
        "replayed": _side_facts(found, difference.replayed),
        "common": [_side_facts(found, side) for side in difference.common],
    }


def _inside_facts(found: Traced, each: InsideBoth) -> JsonObject:
    return {
        "callee": found.gate(each.key.gate) if each.key.gate else None,
        "file": each.key.file,
        "line": each.key.line,
        "function": each.key.function,
        "recorded": each.recorded,
        "replayed": each.replayed,
        "first_event": each.first_event,
    }


def _side_facts(found: Traced, side: TraceSide) -> JsonObject:
    item = side.item
    if item is None or item.kind is Kind.END:
        return {"kind": "end"}
    if item.kind is Kind.EVENT:
        return {"kind": "event", "thread": item.lane, "callee": found.gate(item.number)}
    return {"kind": "tick", "thread": item.lane, "file": side.file, "line": side.line, "function": side.function}
