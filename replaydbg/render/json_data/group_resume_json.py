"""The plan of resuming a group as JSON data."""

from __future__ import annotations

from replaydbg.recovery.group_plan import GroupPlan
from replaydbg.render.json_data.json_object import JsonObject
from replaydbg.render.json_data.resume_json import leftover_facts, plan_facts, recovery_facts


def group_plan_facts(plan: GroupPlan) -> JsonObject:
    """Return the plan as data."""
    return {
        "group": plan.name,
        "resumed_as": plan.continuation.name if plan.continuation is not None else None,
        "processes": [
            {
                "process": each.number,
                "position": each.position,
                "events": plan.line.opened.member(each.number).events,
                "goes_on": each.runs,
                "plan": plan_facts(plan.plans[each.number]) if each.runs else None,
            }
            for each in plan.line.members.values()
        ],
        "cut_off": leftover_facts(plan.leftovers),
        "in_flight": [
            {
                "kind": channel.kind,
                "bytes": sum(each.length for each in pieces),
                "sends": [
                    {"process": each.process, "event": each.event, "offset": each.offset, "bytes": each.length}
                    for each in pieces
                ],
            }
            for channel in plan.flying
            for pieces in channel.flying.values()
        ],
        "done_after": [
            {"process": each.process, "event": each.event, "call": each.call, "text": each.text, "place": each.place}
            for each in plan.acts
        ],
        "recovery": recovery_facts(plan.recovery, plan.seconds),
    }
