"""The result of a hunt as JSON data."""

from __future__ import annotations

from replaydbg.render.hunt_text import HuntReport, KeptRun
from replaydbg.render.json_data.json_object import JsonObject


def hunt_facts(found: HuntReport) -> JsonObject:
    """Return the result as data."""
    low, high = found.caught.rate
    return {
        "runs": found.caught.runs,
        "failures": found.caught.failures,
        "rate": {"low": low, "high": high, "confidence": 0.95},
        "failed": _run_facts(found.failed) if found.failed is not None else None,
        "passed": _run_facts(found.passed) if found.passed is not None else None,
        "more": [_run_facts(each) for each in found.more],
        "is_interrupted": bool(found.caught.interrupted_by),
        "next": ["replaydbg", *found.following] if found.following else None,
    }


def _run_facts(kept: KeptRun) -> JsonObject:
    run = kept.run
    return {
        "name": kept.name,
        "path": str(run.path),
        "run": run.number,
        "why": run.why,
        "status": run.outside.status,
        "events": run.events,
        "chaos": run.chaos,
        "hash_seed": kept.hash_seed,
    }
