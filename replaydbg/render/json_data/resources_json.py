"""The resources of a process as JSON data."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum

from replaydbg.events.records import Site
from replaydbg.events.show import to_json
from replaydbg.render.json_data.json_object import JsonObject
from replaydbg.resources.event_values import byte_count
from replaydbg.resources.kinds import (
    Descriptor,
    Handle,
    LastFileRead,
    OpenedDirectory,
    OpenedEpoll,
    OpenedEventFd,
    OpenedFile,
    OpenedMemory,
    OpenedOther,
    OpenedPidFd,
    OpenedPipe,
    OpenedSocket,
    OpenedTerminal,
    OpenedTimerFd,
    OpenResource,
    Resources,
    Unknown,
)
from replaydbg.resources.unclosed import Unclosed

KIND_NAMES: dict[type, str] = {
    OpenedFile: "file",
    OpenedDirectory: "directory",
    OpenedPipe: "pipe",
    OpenedSocket: "socket",
    OpenedTerminal: "terminal",
    OpenedEpoll: "epoll",
    OpenedEventFd: "eventfd",
    OpenedTimerFd: "timerfd",
    OpenedPidFd: "pidfd",
    OpenedMemory: "memory",
    OpenedOther: "other",
}
"""The `kind` of each class of what descriptors refer to."""


def resources_facts(found: Resources) -> JsonObject:
    """Return all resources of a moment as data."""
    facts = _fields(found)
    facts["opened"] = [opened_facts(each) for each in found.opened]
    return facts


def unclosed_facts(found: Unclosed) -> JsonObject:
    """Return what was opened and not closed between two moments as data."""
    return {
        "earlier": found.earlier,
        "later": found.later,
        "unclosed": found.count,
        "doubtful": found.doubtful,
        "closed": len(found.closed),
        "closed_descriptors": [_with_descriptor(*each) for each in found.closed],
        "lines": [
            {
                "site": _data(line.site),
                "descriptors": [_with_descriptor(*each) for each in line.opened],
            }
            for line in found.lines
        ],
        "children": [_data(each) for each in found.children],
    }


def _with_descriptor(descriptor: Descriptor, resource: OpenResource) -> JsonObject:
    return {"descriptor": _data(descriptor), "resource": opened_facts(resource)}


def opened_facts(resource: OpenResource) -> JsonObject:
    """Return what a descriptor refers to as data: its `kind`, and the facts of the handle beside its own."""
    facts: JsonObject = {"kind": KIND_NAMES[type(resource)]}
    for field in fields(resource):
        value: object = getattr(resource, field.name)
        if isinstance(value, Handle):
            facts |= {"numbers": list(value.numbers), **_fields(value)}
        elif field.name == "kind":
            facts["what"] = value
        else:
            facts[field.name] = _data(value)
    return facts


def _fields(value: object) -> JsonObject:
    assert is_dataclass(value)
    return {_NAMES.get(field.name, field.name): _data(getattr(value, field.name)) for field in fields(value)}


_NAMES = {"lane": "thread"}
"""Users see threads."""


def _data(value: object) -> object:
    if isinstance(value, Unknown):
        return {"unknown": value.reason}
    if isinstance(value, Site):
        return {"callee": value.gate, "file": value.file, "function": value.function, "line": value.line}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, LastFileRead):  # what was read can be large
        return {"event": value.event, "offset": value.offset, "length": byte_count(value.data)}
    if is_dataclass(value) and type(value).__module__.startswith(_OURS):
        return _fields(value)
    if isinstance(value, tuple | list):
        return [_data(each) for each in value]
    return to_json(value)


_OURS = "replaydbg.resources."
