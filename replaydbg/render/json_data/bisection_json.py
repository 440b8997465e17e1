"""The result of a bisection of one run as JSON data; docs/reference/bisect-json.md describes it."""

from __future__ import annotations

from collections.abc import Sequence

from replaydbg.debugger import Session
from replaydbg.debugger.bisection.bisect_results import Bisected, Culprit, VerdictChange
from replaydbg.debugger.bisection.true_stretches import TrueStretch
from replaydbg.render.bisection_text import headline
from replaydbg.render.json_data.events_json import event_facts
from replaydbg.render.json_data.json_object import JsonObject
from replaydbg.render.json_data.moments_json import moment_facts
from replaydbg.render.texts import events_of, moment_text


def facts(session: Session, found: Bisected) -> JsonObject:
    """Return a result as data."""
    culprit = found.culprit
    return {
        "kind": "snapshots",
        "outcome": "found" if culprit is not None else "none",
        "reason": None if culprit is not None else " ".join(headline(session, found)),
        "predicate": found.predicate,
        "answer": found.answer.value,
        "first": moment_text(found.first),
        "last": moment_text(found.last),
        "last_reason": found.last_reason or None,
        "last_good": moment_text(found.last_good) if found.last_good is not None else None,
        "first_bad": moment_text(found.first_bad) if found.first_bad is not None else None,
        "places": found.places,
        "is_monotone": found.is_monotone if not found.has_unseen else None,
        "unfit": [moment_text(each) for each in found.unfit],
        "temporary": found.passing if not found.has_unseen else None,
        "first_temporary": moment_text(found.first_passing) if found.first_passing is not None else None,
        "healed": _flip_facts(found.healed),
        "first_healed": _flip_facts(found.first_healed),
        "last_healed": _flip_facts(found.last_healed),
        "seen_at": moment_text(found.seen_at) if found.seen_at is not None else None,
        "is_exact": found.is_exact,
        "note": found.note or None,
        "probes": [
            {
                **moment_facts(session, each.count, each.moment),
                "verdict": each.verdict.value,
                "reason": each.reason or None,
                "seconds": round(each.seconds, 4),
                "is_check": each.is_check,
            }
            for each in found.looks
        ],
        "culprit": _culprit_facts(session, culprit) if culprit is not None else None,
    }


def verdict_changes_facts(session: Session, changes: Sequence[VerdictChange]) -> list[JsonObject]:
    """Return all changes of the verdict as data."""
    return [
        {
            **moment_facts(session, each.count, each.moment),
            "is_bad": each.is_bad,
            "file": each.file,
            "line": each.line,
            "function": each.function,
        }
        for each in changes
    ]


def _flip_facts(flip: VerdictChange | None) -> JsonObject | None:
    if flip is None:
        return None
    return {"moment": moment_text(flip.moment), "file": flip.file, "line": flip.line, "function": flip.function}


def _culprit_facts(session: Session, culprit: Culprit) -> JsonObject:
    events = events_of(session, min(culprit.events), max(culprit.events)) if culprit.events else []
    return {
        **moment_facts(session, culprit.count, culprit.moment),
        "seen": moment_text(culprit.seen_moment),
        "thread": culprit.lane,
        "file": culprit.file,
        "line": culprit.line,
        "function": culprit.function,
        "source": culprit.source,
        "before": culprit.before.value,
        "before_reason": culprit.before_reason or None,
        "values": [
            {"source": each.source, "before": each.before or None, "after": each.after or None}
            for each in culprit.values
        ],
        "events": [event_facts(each) for each in events if each.number in culprit.events],
    }


def stretch_facts(session: Session, stretch: TrueStretch) -> JsonObject:
    """Return a stretch as data; null is an end of the searched range."""
    return {"begin": _end_facts(session, stretch.begin), "end": _end_facts(session, stretch.end)}


def _end_facts(session: Session, change: VerdictChange | None) -> JsonObject | None:
    if change is None:
        return None
    place = {"file": change.file, "line": change.line, "function": change.function}
    return {**moment_facts(session, change.count, change.moment), **place}
