"""The result of a fault sweep as JSON data."""

from __future__ import annotations

from replaydbg.futures.faults.sweep import FaultTrial
from replaydbg.futures.faults.sweep_text import SweepReport
from replaydbg.futures.future import Future, FutureVerdict
from replaydbg.render.json_data.json_object import JsonObject


def sweep_facts(report: SweepReport) -> JsonObject:
    """Return the result as data."""
    found = report.found
    return {
        "recording": found.name,
        "event": found.event,
        "futures": len(found.trials),
        **{verdict.value: found.count(verdict) for verdict in FutureVerdict},
        "without_fault": _ending(found.plain),
        "calls": dict(found.calls),
        "never_called": list(found.never),
        "is_cut": found.is_cut,
        "unkept": found.unkept or None,
        "seconds": round(found.seconds, 3),
        "trials": [_trial_facts(each, report) for each in found.trials],
    }


def _trial_facts(trial: FaultTrial, report: SweepReport) -> JsonObject:
    name = report.names[trial.kept] if trial.kept is not None else None
    faults = [
        {"call": fault.column.name, "k": fault.number, "fault": fault.fault, "gate": met.gate, "line": met.line}
        for fault, met in zip(trial.faults, trial.met, strict=True)
    ]
    return {"faults": faults, **_ending(trial.future), "recording": name}


def _ending(future: Future) -> JsonObject:
    exception = future.exception
    return {
        "verdict": future.verdict.value,
        "ending": future.ending,
        "status": future.status,
        "is_deadlock": future.is_deadlock,
        "exception": exception.type if exception is not None else None,
        "message": exception.text if exception is not None else None,
        "last_line": future.last_line,
    }
