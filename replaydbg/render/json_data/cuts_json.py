"""Cuts of a group as JSON data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from replaydbg.debugger.values.values_at_moments import ModuleValue
from replaydbg.distributed.checkpoint_policies import CheckpointPositions, Recovery
from replaydbg.distributed.matching.channels import MessageChannel
from replaydbg.groups.cut_values import ChangingLine
from replaydbg.groups.group_cuts import FlyingMessage, GroupCut
from replaydbg.groups.invariants import CutValue
from replaydbg.groups.live_cuts import CheckedCut
from replaydbg.groups.messages import MessageEnd
from replaydbg.render.groups.invariants_text import shown_value
from replaydbg.render.json_data.channels_json import end_facts
from replaydbg.render.json_data.json_object import JsonObject

MOST_INTEGER = 1 << 63
"""Larger ones are texts: few readers of JSON know them."""


def cut_facts(cut: GroupCut, last: Mapping[int, int]) -> JsonObject:
    """Return a cut as data."""
    return {
        "processes": [
            {"process": process, "event": position, "events": last[process], "asked_for": cut.wanted.get(process)}
            for process, position in sorted(cut.positions.items())
        ],
        "is_quiet": cut.is_quiet,
        "is_consistent": not cut.doubts,
        "doubts": list(cut.doubts),
    }


def live_facts(each: CheckedCut) -> JsonObject:
    """Return a live cut as data."""
    return {
        "number": each.number,
        "name": each.live.name,
        "time": each.live.time,
        "process": each.live.process or None,
        "position": each.live.position or None,
        "ticket": each.live.ticket,
        "positions": {str(process): position for process, position in sorted(each.cut.positions.items())},
        "channels": [channel._asdict() for channel in each.channels],
        "differences": list(each.differences),
    }


def flying_facts(messages: Sequence[FlyingMessage], contents: Sequence[bytes | None] | None) -> list[JsonObject]:
    """Return messages in flight as data; without `contents` they have no content."""
    return [
        {
            "channel": message.channel.number,
            "send": end_facts(message.send),
            "receive": end_facts(message.receive) if message.receive is not None else None,
            "length": message.length,
            "is_whole": message.is_whole,
            "certainty": message.certainty,
            **({"content": _hex(contents[at])} if contents is not None else {}),
        }
        for at, message in enumerate(messages)
    ]


def _hex(content: bytes | None) -> str | None:
    return content.hex() if content is not None else None


def unfinished_facts(sends: Sequence[tuple[MessageChannel, MessageEnd]]) -> list[JsonObject]:
    """Return sends that had not ended as data."""
    return [{"channel": channel.number, "send": end_facts(send)} for channel, send in sends]


def value_facts(values: Mapping[int, ModuleValue]) -> list[JsonObject]:
    """Return the values of an expression as data."""
    return [
        {"process": process, "value": value.text if not value.reason else None, "reason": value.reason or None}
        for process, value in sorted(values.items())
    ]


def cut_value_facts(place: int, value: CutValue) -> JsonObject:
    """Return an invariant in a cut as data; `place` is that of the cut in its chain."""
    return {
        "place": place,
        "positions": {str(process): position for process, position in sorted(value.cut.positions.items())},
        "verdict": value.verdict.value,
        "locals": {str(process): plain_value(each) for process, each in sorted(value.locals.items())},
        "flight": [plain_value(each) for each in value.flight],
        "total": plain_value(value.total),
        "reason": value.reason or None,
    }


def change_facts(change: ChangingLine) -> JsonObject:
    """Return a line that changed a value as data."""
    return {
        "process": change.process,
        "event": change.moment.event,
        "step": change.moment.step,
        "file": change.file,
        "line": change.line,
        "source": change.text,
        "before": change.before,
        "after": change.after,
    }


def recovery_facts(policy: str, failed: Sequence[int], checkpoints: CheckpointPositions, found: Recovery) -> JsonObject:
    """Return what a failure costs under a policy as data."""
    return {
        "policy": policy,
        "failed": list(failed),
        "checkpoints": {str(process): len(each) for process, each in sorted(checkpoints.positions.items())},
        "forced": checkpoints.forced,
        "line": {str(process): position for process, position in sorted(found.line.items())},
        "lost": {str(process): count for process, count in sorted(found.lost.items())},
        "executed": found.executed,
        "rolled_back": found.steps,
        "to_the_start": found.to_the_start,
    }


def plain_value(value: object) -> object:
    """Return a number, a text or None as it is, everything else as its repr()."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int) and abs(value) < MOST_INTEGER:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return shown_value(value)
