"""The first differences between two recordings as JSON data."""

from __future__ import annotations

from replaydbg.bisect.twins import Input
from replaydbg.debugger.compare.value_courses import OtherValues, OtherWay, Step
from replaydbg.render.first_differences_text import FirstDifferences, lane_text
from replaydbg.render.json_data.json_object import JsonObject
from replaydbg.render.texts import moment_text


def facts(found: FirstDifferences) -> JsonObject:
    """Return it as data."""
    return {
        "control_flow": _way_facts(found.way),
        "start": [{"input": name, "first": one, "second": two} for name, one, two in found.start],
        "input": _input_facts(found.input, found.input_text),
        "clock": _input_facts(found.clock, found.clock_text),
        "values": _values_facts(found.values),
        "notes": list(found.notes),
    }


def _step_facts(step: Step | None) -> JsonObject | None:
    if step is None:
        return None
    place = step.place
    return {
        "moment": moment_text(step.moment),
        "file": place.file,
        "line": place.line,
        "function": place.function,
        "source": step.source,
    }


def _way_facts(way: OtherWay | None) -> JsonObject | None:
    if way is None:
        return None
    after = [_step_facts(each) for each in way.after] if way.after is not None else None
    return {"thread": lane_text(way.lane), "after": after, "next": [_step_facts(each) for each in way.next]}


def _values_facts(values: OtherValues | None) -> JsonObject | None:
    if values is None:
        return None
    after = [_step_facts(each) for each in values.after] if values.after is not None else None
    names = [{"name": name, "first": one, "second": two} for name, one, two in values.names]
    return {
        "thread": lane_text(values.lane),
        "at": [_step_facts(each) for each in values.at],
        "after": after,
        "variables": names,
    }


def _input_facts(each: Input | None, text: tuple[str, str, str]) -> JsonObject | None:
    if each is None:
        return None
    return {"input": text[0], "first": text[1], "second": text[2], "events": [each.good_event, each.bad_event]}
