"""Entries of the event log as JSON data."""

from __future__ import annotations

from replaydbg.events.records import Control, Entry, Event
from replaydbg.events.show import to_json
from replaydbg.render.json_data.json_object import JsonObject


def entry_facts(entry: Entry) -> JsonObject:
    """Return an entry as data."""
    if isinstance(entry, Control):
        return {
            "control": entry.kind.name.lower(),
            "after": entry.after,
            "thread": entry.lane,
            "time_ns": entry.time_ns,
            "number": entry.number,
            "name": entry.name,
            "why": None if entry.why is None else entry.why.name.lower(),
            "ticks": entry.ticks,
            "note": None if entry.note is None else {"kind": entry.note[0], "text": entry.note[1]},
        }
    return event_facts(entry)


def event_facts(event: Event) -> JsonObject:
    """Return an event as data."""
    site = event.site
    return {
        "event": event.number,
        "thread": event.lane,
        "time_ns": event.time_ns,
        "callee": event.gate,
        "file": site.file,
        "function": site.function,
        "line": site.line,
        "arguments": None if event.arguments is None else [to_json(argument) for argument in event.arguments],
        "raised": event.raised,
        "outcome": to_json(event.outcome),
        "filled": to_json(event.filled),
        "digest": None if event.digest is None else event.digest.hex(),
    }
