"""The arguments of a question, which an agent may have sent in any form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replaydbg.errors import UsageError
from replaydbg.events.nearest_words import nearest
from replaydbg.mcp.messages import shown
from replaydbg.mcp.tool_table import Tool

_TYPES: dict[str, tuple[type, str]] = {
    "string": (str, "a string"),
    "integer": (int, "an integer"),
    "boolean": (bool, "true or false"),
    "array": (list, "a list"),
}

MOST_CHARACTERS = 4000
"""The longest text: an expression that is longer is a mistake."""

MOST_NUMBER = 1_000_000_000


def checked_arguments(tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that were given and are not null, as the schema of the tool has them. Raises UsageError."""
    found = {name: value for name, value in given.items() if value is not None}
    for name, value in found.items():
        if name not in tool.properties:
            known = ", ".join(tool.properties) or "none"
            hint = nearest(name, tool.properties)
            raise UsageError(f"{tool.name} has no argument {name!r:.80}{hint}. Its arguments: {known}.")
        _check(name, value, tool.properties[name])
    for name in tool.needed:
        if name not in found or found[name] == "":
            raise UsageError(f"{tool.name} needs {name!r}: {tool.properties[name]['description']}.")
    return found


def _check(name: str, value: object, schema: Mapping[str, Any]) -> None:
    kind, words = _TYPES[schema["type"]]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise UsageError(f"{name} must be {words} (got {shown(value)}).")
    if isinstance(value, int) and value < schema.get("minimum", value):
        raise UsageError(f"{name} must be at least {schema['minimum']} (got {value}).")
    if isinstance(value, int) and value > MOST_NUMBER:
        raise UsageError(f"{name} must be at most {MOST_NUMBER:,} (got {value:,}).")
    if isinstance(value, str) and len(value) > MOST_CHARACTERS:
        raise UsageError(f"{name} must have at most {MOST_CHARACTERS:,} characters (got {len(value):,}).")
    if "enum" in schema and value not in schema["enum"]:
        raise UsageError(f"{name} must be one of {', '.join(schema['enum'])} (got {value!r:.80}).")
    if isinstance(value, list):
        for each in value:
            _check(f"each of {name}", each, schema["items"])
