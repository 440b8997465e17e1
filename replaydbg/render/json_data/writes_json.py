"""Who wrote a value, and its changes over the run, as JSON data."""

from __future__ import annotations

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import LastWrite, Origin, ValueChange
from replaydbg.groups.group_session import GroupSession
from replaydbg.render.json_data.channels_json import message_facts
from replaydbg.render.json_data.events_json import event_facts
from replaydbg.render.json_data.json_object import JsonObject
from replaydbg.render.json_data.moments_json import moment_facts
from replaydbg.render.texts import events_of, moment_text, names_to_follow


def change_facts(session: Session, change: ValueChange) -> JsonObject:
    """Return one change of a value as data."""
    return {
        **moment_facts(session, change.count, change.moment),
        "thread": change.lane,
        "task": session.tasks.name_at(change.count, change.lane) or None,
        "file": change.file,
        "line": change.line,
        "function": change.function,
        "value": change.text or None,
    }


def last_write_facts(session: Session, why: LastWrite, group: GroupSession | None = None) -> JsonObject:
    """Return the last write of a value as data; with the `group`, who sent what its events received."""
    if why.moment is None:
        return {"expression": why.expression, "written": False, "note": why.note or None}
    events = events_of(session, min(why.events), max(why.events)) if why.events else []
    received = group.received(session, why.events).messages if group is not None else {}
    return {
        "expression": why.expression,
        "written": True,
        **moment_facts(session, why.count, why.moment),
        "thread": why.lane,
        "task": session.tasks.name_at(why.count, why.lane) or None,
        "file": why.file,
        "line": why.line,
        "function": why.function,
        "source": why.source,
        "before": why.before or None,
        "after": why.after or None,
        "parts": [
            {"name": each.name, "before": each.before or None, "after": each.after or None} for each in why.parts
        ],
        "moved": {"index": why.moved.index, "source": why.moved.source or None} if why.moved is not None else None,
        "is_argument": why.is_argument,
        "is_binding": why.is_binding,
        "is_equal": why.is_equal,
        "changed": last_write_facts(session, why.changed, group) if why.changed is not None else None,
        "note": why.note or None,
        "origins": [_origin(each) for each in why.origins],
        "unknown": why.unknown or None,
        "events": [
            event_facts(each) | ({"messages": message_facts(received[each.number])} if each.number in received else {})
            for each in events
            if each.number in why.events
        ],
        "names": list(names_to_follow(why)),
        "content": last_write_facts(session, why.content, group) if why.content is not None else None,
    }


def _origin(origin: Origin) -> JsonObject:
    returned = {"moment": moment_text(origin.moment), "count": origin.count} if origin.moment is not None else None
    if returned is not None:
        returned |= {"file": origin.file, "line": origin.line, "function": origin.function, "source": origin.source}
    return {
        "text": origin.text,
        "kind": origin.kind,
        "is_same": origin.is_same,
        "events": list(origin.events),
        "returned": returned,
        "parts": [_origin(each) for each in origin.parts],
    }
