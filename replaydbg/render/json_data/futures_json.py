"""The result of futures as JSON data."""

from __future__ import annotations

from collections.abc import Mapping

from replaydbg.futures.curve_text import step_text
from replaydbg.futures.deciding_text import switch_text
from replaydbg.futures.futures_text import FuturesReport, next_command, opened_name
from replaydbg.futures.grouping import FutureGroup
from replaydbg.futures.launcher import Futures
from replaydbg.futures.schedules.decisions import LoopPause, ReadyOrder, ThreadPlace
from replaydbg.futures.searches.curve import CurvePoint, FutureCurve, NoReturn
from replaydbg.futures.searches.deciding import DecidingSchedule, DecidingSwitch
from replaydbg.futures.source_places import source_line, thread_name
from replaydbg.hunt.rate import CONFIDENCE
from replaydbg.render.json_data.json_object import JsonObject


def futures_facts(report: FuturesReport) -> JsonObject:
    """Return the result as data."""
    found = report.found
    low, high = found.share.bounds
    return {
        "recording": found.name,
        "event": found.event if found.cut is None else None,
        "cut": None if found.cut is None else {str(process): at for process, at in sorted(found.cut.items())},
        "futures": found.count,
        "failed": found.share.failed,
        "passed": found.share.decided - found.share.failed,
        "inconclusive": found.count - found.share.decided,
        "share": {"low": low, "high": high, "confidence": 0.95},
        "is_fixed": found.is_fixed,
        "unkept": found.unkept or None,
        "seconds": round(found.seconds, 3),
        "replay_seconds": round(found.replay_seconds, 3),
        "next": list(next_command(report)) or None,
        "systematic": _systematic_facts(found),
        "groups": [_group_facts(each, report) for each in found.groups],
        "deciding": [_deciding_facts(each, report) for each in found.deciding],
    }


def _systematic_facts(found: Futures) -> JsonObject | None:
    count = found.systematic
    return {"preemptions": count.preemptions, "left": count.left, "equal": count.equal} if count is not None else None


def _deciding_facts(found: DecidingSchedule, report: FuturesReport) -> JsonObject:
    name = report.shrunk.get(found.ending)
    return {
        "ending": found.ending,
        "seed": found.request.seed,
        "switches": [_switch_facts(found, each) for each in found.switches],
        "is_confirmed": found.is_confirmed,
        "usual": found.usual.verdict.value,
        "deviations": found.deviated,
        "futures": found.trials,
        "seconds": round(found.seconds, 3),
        "recording": name,
        "open": ["replaydbg", "debug", name] if name else None,
    }


def _switch_facts(found: DecidingSchedule, switch: DecidingSwitch) -> JsonObject:
    decision = switch.decision
    facts: JsonObject = {
        "text": switch_text(found, switch),
        "event": decision.event,
        "marks": decision.marks,
        "ticks": decision.ticks,
        "thread": thread_name(found.threads, decision.lane),
        "without": switch.without.value,
    }
    if isinstance(decision, ReadyOrder):
        return {**facts, "kind": "order", "order": decision.number, "place": _place_facts(found.sources, decision.at)}
    if isinstance(decision, LoopPause):
        pause, place = decision.microseconds, _place_facts(found.sources, decision.at)
        return {**facts, "kind": "pause", "microseconds": pause, "place": place}
    return {
        **facts,
        "kind": "preemption" if decision.is_preemption else "choice",
        "place": _place_facts(found.sources, decision.left),
        "to_thread": thread_name(found.threads, decision.to),
        "to_place": _place_facts(found.sources, decision.entered),
    }


def _place_facts(sources: Mapping[str, bytes], place: ThreadPlace) -> JsonObject | None:
    if not place.line:
        return None
    text = source_line(sources, place)
    return {"file": place.file, "line": place.line, "function": place.function, "text": text or None}


def curve_facts(curve: FutureCurve) -> JsonObject:
    """Return the shares over the moments of a run as data."""
    return {
        "recording": curve.name,
        "futures": curve.count,
        "moments": curve.moments,
        "seconds": round(curve.seconds, 3),
        "points": [_point_facts(each) for each in curve.points],
        "no_return": _no_return_facts(curve, curve.no_return) if curve.no_return is not None else None,
    }


def _point_facts(point: CurvePoint) -> JsonObject:
    low, high = point.share.bounds
    return {
        "event": point.moment.event - 1,
        "switches": point.moment.switches,
        "failed": point.share.failed,
        "passed": point.share.decided - point.share.failed,
        "inconclusive": point.inconclusive,
        "share": {"low": low, "high": high, "confidence": CONFIDENCE},
    }


def _no_return_facts(curve: FutureCurve, found: NoReturn) -> JsonObject:
    step = found.step
    facts: JsonObject = {
        "event": found.point.moment.event - 1,
        "switches": found.point.moment.switches,
        "before": {"event": found.before.moment.event - 1, "switches": found.before.moment.switches},
        "is_exact": step is not None,
        "text": step_text(curve, found) or None,
    }
    if step is None or step.event is not None:
        site = step.event.site if step is not None and step.event is not None else None
        place = ThreadPlace(site.file or "", site.line or 0, site.function or "") if site is not None else None
        return {**facts, "place": _place_facts(curve.sources, place) if place is not None else None}
    return {
        **facts,
        "thread": thread_name(curve.threads, step.lane),
        "place": _place_facts(curve.sources, found.left),
        "to_thread": thread_name(curve.threads, step.to),
        "to_place": _place_facts(curve.sources, found.entered),
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
        "process": group.example.process or None,
        "status": group.example.status,
        "is_deadlock": group.example.is_deadlock,
        "exception": exception.type if exception is not None else None,
        "message": exception.text if exception is not None else None,
        "file": place.file if place is not None else None,
        "line": place.line if place is not None else None,
        "recordings": kept,
        "open": ["replaydbg", "debug", opened_name(group, report.names)] if kept else None,
    }
