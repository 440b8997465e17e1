"""Differences between two recordings of one program as JSON data."""

from __future__ import annotations

from itertools import zip_longest

from replaydbg.bisect.lane_turns import LaneKey, Preemption
from replaydbg.bisect.twins import Behaviour, BehaviourKind, Input, InputKind
from replaydbg.debugger.compare.first_difference import MemoryDifference, TurningPoint
from replaydbg.debugger.compare.thread_switches import Interruption, LinesRun, TurnOrder
from replaydbg.errors import quoted
from replaydbg.events.records import Site
from replaydbg.events.show import show_call, to_json
from replaydbg.hunt.codes import CodeDifference
from replaydbg.hunt.flip import Flip, OtherTurn
from replaydbg.render.json_data.json_object import JsonObject
from replaydbg.render.recordings_text import RecordingsReport, event_of, travels
from replaydbg.render.texts import moment_text


def facts(found: RecordingsReport) -> JsonObject:
    """Return it as data."""
    good, bad = found.names
    flip = found.flip
    is_found = (flip is not None and not flip.reason) or (found.code is not None and found.code.is_cause)
    return {
        "kind": "recordings",
        "outcome": "found" if is_found else "none",
        "reason": "" if is_found else (flip.reason if flip is not None else "no inputs were exchanged"),
        "good": {"name": good, "path": str(found.twins.good.path), "ended": found.endings[0]},
        "bad": {"name": bad, "path": str(found.twins.bad.path), "ended": found.endings[1]},
        "inputs": [_input_facts(found, each) for each in found.comparison.inputs],
        "first_input": _optional(found, found.comparison.inputs[0] if found.comparison.inputs else None),
        "first_answer": _optional(found, found.comparison.first_answer),
        "first_behaviour": _behaviour_facts(found, found.comparison.first),
        "behaviours": found.comparison.others,
        "states": [_memory_facts(apart) for apart in found.travelled.apart],
        "control_flow": _turn_facts(found.travelled.turn),
        "flip": _flip_facts(found, flip),
        "code": _code_facts(found.code),
        "commands": [f"replaydbg {' '.join(map(quoted, words))}" for words in travels(found)],
    }


def _code_facts(code: CodeDifference | None) -> JsonObject | None:
    if code is None:
        return None
    return {
        "is_cause": code.is_cause,
        "changes": [
            {"path": each.path, "line": each.line or None, "good": each.good, "bad": each.bad} for each in code.changes
        ],
        "bad_passes": code.bad_passes,
        "good_fails": code.good_fails,
        "reason": code.why or None,
        "trials": code.trials,
    }


def _optional(found: RecordingsReport, each: Input | None) -> JsonObject | None:
    return _input_facts(found, each) if each is not None else None


def _input_facts(found: RecordingsReport, each: Input) -> JsonObject:
    facts: JsonObject = {"kind": each.kind.value, "name": each.name}
    facts |= {"good": to_json(each.good), "bad": to_json(each.bad)}
    if each.kind is InputKind.ANSWER:
        event = event_of(found, each)
        facts |= {"callee": event.gate, "call": show_call(event), **_site_facts(found, event.site)}
        facts |= {"good_event": each.good_event, "bad_event": each.bad_event, "is_handle": each.is_handle}
        facts["is_elapsed"] = each.is_elapsed
    return facts


def _site_facts(found: RecordingsReport, site: Site) -> JsonObject:
    return {"file": site.file, "line": site.line, "function": site.function, "source": found.twins.text(site)}


def _behaviour_facts(found: RecordingsReport, first: Behaviour | None) -> JsonObject | None:
    if first is None:
        return None
    side, number = (
        (found.twins.good_side, first.good_event)
        if first.kind is BehaviourKind.ONLY_GOOD
        else (found.twins.bad_side, first.bad_event)
    )
    event = side.events[number - 1]
    return {
        "did": first.kind.value,
        "good_event": first.good_event,
        "bad_event": first.bad_event,
        "callee": event.gate,
        "call": show_call(event),
        **_site_facts(found, event.site),
    }


def _memory_facts(apart: MemoryDifference) -> JsonObject:
    place = apart.place
    return {
        "scope": apart.scope,
        "is_flipped": apart.is_flipped,
        "good": moment_text(apart.good),
        "bad": moment_text(apart.bad),
        "file": place.file if place is not None else None,
        "line": place.line if place is not None else None,
        "function": place.function if place is not None else None,
        "source": apart.source,
        "returned_to": (
            {**apart.returned_to._asdict(), "source": apart.returned_to_source} if apart.returned_to else None
        ),
        "changed": [
            {"path": each.path, "kind": each.kind, "good": each.before, "bad": each.after} for each in apart.changed
        ],
        "grown": [{"path": each.path, "good": each.before, "bad": each.after} for each in apart.grown],
    }


def _turn_facts(turn: TurningPoint | None) -> JsonObject | None:
    if turn is None:
        return None
    ways = {
        name: each._asdict() if each is not None else None for name, each in (("good", turn.good), ("bad", turn.bad))
    }
    return {"moment": moment_text(turn.moment), **turn.place._asdict(), "source": turn.source, **ways}


def _flip_facts(found: RecordingsReport, flip: Flip | None) -> JsonObject | None:
    if flip is None:
        return None
    return {
        "inputs": [_input_facts(found, each) for each in flip.inputs],
        "preemptions": [
            _preemption_facts(*pair) for pair in zip(flip.preemptions, found.travelled.gave_way, strict=True)
        ],
        "switches": [_other_turn_facts(*pair) for pair in zip_longest(flip.turns, found.travelled.took_turns)],
        "is_confirmed": flip.is_confirmed,
        "replays": [
            {
                "what": each.what,
                "ended": each.outcome.value if each.outcome else None,
                "reason": each.said,
                "is_confirmed": each.is_confirmed,
            }
            for each in flip.replays
        ],
        "explained": flip.explained._asdict(),
        "others": [[_input_facts(found, each) for each in other] for other in flip.others],
        "is_from_bad": flip.is_from_bad,
        "deviations": dict(flip.liberties),
        "is_cut": flip.is_cut,
        "trials": flip.trials,
        "undecided": flip.undecided,
    }


def _preemption_facts(each: Preemption, at: Interruption | None) -> JsonObject:
    place = at.place if at is not None else None
    return {
        "thread": each.number,
        "thread_name": _name(each.lane),
        "event": each.after,
        "ticks": each.ticks,
        "moment": moment_text(at.moment) if at is not None else None,
        "file": place.file if place is not None else None,
        "line": place.line if place is not None else None,
        "function": place.function if place is not None else None,
        "source": at.source if at is not None else "",
        "resumed": at.resumed._asdict() if at is not None and at.resumed is not None else None,
        "called_from": at.called_from._asdict() if at is not None and at.called_from is not None else None,
        "meanwhile": [_lines_run(ran) for ran in at.meanwhile] if at is not None else [],
    }


def _other_turn_facts(each: OtherTurn, took: TurnOrder | None) -> JsonObject:
    return {
        "thread": each.recorded,
        "thread_name": _name(each.recorded_key),
        "instead": each.instead,
        "instead_name": _name(each.instead_key),
        "event": each.after,
        "moment": moment_text(took.moment) if took is not None else None,
        "first": [_lines_run(ran) for ran in took.first] if took is not None else [],
        "then": [_lines_run(ran) for ran in took.then] if took is not None else [],
    }


def _lines_run(ran: LinesRun) -> JsonObject:
    facts = ran._asdict()
    return {"thread": facts.pop("lane"), **facts}


def _name(key: LaneKey) -> str:
    return key[-1][0] if key else "main"
