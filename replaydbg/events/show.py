"""Format recorded values and events as short text, and as JSON. Text is safe for a terminal whatever was recorded."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable
from typing import Any

from replaydbg.events import linux, values
from replaydbg.events.records import Event
from replaydbg.events.values import TypeName, Value

MAX_ITEMS = 8
MAX_LEVELS = 4
_EXACT_BITS = 256


def printable(text: str) -> str:
    """Return `text` with all non-printable characters escaped: control codes, lone surrogates."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def show_status(status: int) -> str:
    """Return how a program ended: its exit code, or the signal that killed it."""
    if status >= 0:
        return f"exit code {status}"
    return f"killed by {linux.SIGNALS.get(-status, f'signal {-status}')}"


def show_value(value: Value, limit: int = 80) -> str:
    """Return a text similar to `repr(value)`, in about `limit` characters; the work is bounded too."""
    text = _show(value, limit, 0)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def show_call(event: Event, limit: int = 80) -> str:
    """Return the crossing as a call, such as `os.urandom(8)`."""
    return show_crossing(event.gate, event.arguments or (), limit)


def show_crossing(gate: str, given: tuple[Value, ...], limit: int = 80) -> str:
    """Return a gate and its arguments as a call."""
    arguments = list(given)
    keywords: dict[str, Value] = {}
    # Keyword arguments are stored as a dict at the end; a dict given by position looks the same, and reads as well.
    if arguments and type(arguments[-1]) is dict and all(type(key) is str for key in arguments[-1]):
        keywords = arguments.pop()
    parts = [show_value(argument, limit) for argument in arguments]
    parts += [f"{printable(key)}={show_value(item, limit)}" for key, item in keywords.items()]
    return f"{printable(gate)}({', '.join(parts)})"


def show_outcome(event: Event, limit: int = 80) -> str:
    """Return the outcome of the crossing, such as `-> b'...'` or `raised KeyError('x')`."""
    if event.raised and event.outcome is None:
        return "raised what the program's own code raised inside"
    return f"raised {show_value(event.outcome, limit)}" if event.raised else f"-> {show_value(event.outcome, limit)}"


def _show(value: Value, limit: int, level: int) -> str:
    kind = type(value)
    if value is None or kind in (bool, float, complex):
        return repr(value)
    if kind is int:
        # Past some thousand digits repr() refuses, and long before that nobody reads them.
        return repr(value) if value.bit_length() <= _EXACT_BITS else f"<int of {value.bit_length()} bits>"
    if kind in (str, bytes, bytearray):
        return repr(value) if len(value) <= limit else repr(value[:limit]) + "..."
    if kind in _BRACKETS:
        before, after = _BRACKETS[kind]
        if level >= MAX_LEVELS:
            return f"{before}...{after}"
        return before + _join(value, limit, level, after)
    return _show_recorded(value, limit, level)


_BRACKETS: dict[type, tuple[str, str]] = {
    tuple: ("(", ")"),
    list: ("[", "]"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
    dict: ("{", "}"),
}


def _join(items: Iterable[Value], limit: int, level: int, after: str) -> str:
    parts: list[str] = []
    pairs = items.items() if isinstance(items, dict) else ((item, None) for item in items)
    for key, item in pairs:
        if len(parts) == MAX_ITEMS:
            parts.append("...")
            break
        part = _show(key, limit, level + 1)
        parts.append(f"{part}: {_show(item, limit, level + 1)}" if isinstance(items, dict) else part)
    return ", ".join(parts) + ("," if after == ")" and len(parts) == 1 else "") + after


def _show_recorded(value: Value, limit: int, level: int) -> str:
    if isinstance(value, values.ExceptionValue):
        return printable(str(value.type)) + "(" + _join(value.args, limit, level, "") + ")"
    if isinstance(value, values.StructSequence):
        return printable(str(value.type)) + "(" + _join(value.values, limit, level, "") + ")"
    if isinstance(value, values.StatResult):
        return f"os.stat_result(mode={value.mode:#o}, size={value.size}, ino={value.ino}, ...)"
    if isinstance(value, values.Argument):
        return f"<argument {value.index}>"
    if isinstance(value, values.ContentRef):
        return f"<{value.length} bytes>"
    if isinstance(value, values.Opaque):
        return f"<{printable(value.type_name)}>"
    if isinstance(value, values.Cut):
        return f"{_show(value.start, limit, level)}... ({value.length} bytes)"
    if isinstance(value, values.DirectoryEntry):
        return f"<DirEntry {_show(value.name, limit, level)}>"
    if isinstance(value, values.Buffer):
        return "<output bytes>" if value.leaves else "<buffer>"
    if isinstance(value, values.OpenFile):
        return "<closed file>" if value.fd is None else f"<file {value.fd}>"
    raise AssertionError(f"no recorded value: {type(value)!r}")


def to_json(value: Value) -> Any:
    """Return `value` as data for `json.dumps`; types that JSON lacks become an object with a `kind`."""
    kind = type(value)
    if value is None or kind in (bool, str):
        return value
    if kind is int:
        return value if value.bit_length() <= _EXACT_BITS else {"kind": "int", "hex": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"kind": "float", "repr": repr(value)}
    convert = _CONVERT.get(kind)
    if convert is not None:
        return {"kind": kind.__name__, **convert(value)}
    if isinstance(value, TypeName):
        return str(value)
    facts: dict[str, Any] = {"kind": kind.__name__}
    for name in kind.__match_args__:
        facts[name] = to_json(getattr(value, name))
    return facts


# No comprehension here: it has a frame of its own, and values may be nested as deep as Python's stack allows.
def _items(value: Iterable[Value]) -> dict[str, Any]:
    return {"items": list(map(to_json, value))}


def _base64(value: bytes | bytearray) -> dict[str, Any]:
    return {"base64": base64.b64encode(value).decode()}


_CONVERT: dict[type, Callable[[Any], dict[str, Any]]] = {
    bytes: _base64,
    bytearray: _base64,
    complex: lambda value: {"repr": repr(value)},
    tuple: _items,
    list: _items,
    set: _items,
    frozenset: _items,
    dict: lambda value: {"items": list(map(list, zip(map(to_json, value), map(to_json, value.values()), strict=True)))},
}
