"""The variables of a frame, and the parts of values, page by page."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from replaydbg.dap.debuggee import Debuggee
from replaydbg.dap.editor_answers import EditorAnswer
from replaydbg.dap.handles import FrameHandle, ValueHandle
from replaydbg.dap.wire.request_arguments import RequestArguments
from replaydbg.debugger.session_results import Variable
from replaydbg.errors import UsageError
from replaydbg.events.show import printable

MOST_PARTS = 1000
"""Parts of a value in one answer."""

PAGED_FROM = 100
"""Parts from which on a client asks for some of them at a time."""

_PLUMBING = ("module", "function", "type", "builtin_function_or_method", "ABCMeta", "EnumType")
"""The types of most values in a module's namespace; they are listed last."""


def scopes(debuggee: Debuggee, arguments: RequestArguments) -> EditorAnswer:
    """Return the kinds of variables of a frame; of a task that waits there are none."""
    handle = debuggee.frame_at(arguments.needed_number("frameId"))
    if handle.frame < 0:
        return EditorAnswer({"scopes": []})
    local = {
        "name": "Locals",
        "presentationHint": "locals",
        "variablesReference": debuggee.values.of(ValueHandle(handle)),
        "expensive": False,
    }
    of_module = {
        "name": "Globals",
        "variablesReference": debuggee.values.of(ValueHandle(handle, of_module=True)),
        "expensive": True,
    }
    is_module = debuggee.python_frame(handle).function == "<module>"
    return EditorAnswer({"scopes": [of_module | {"expensive": False}] if is_module else [local, of_module]})


def variables(debuggee: Debuggee, arguments: RequestArguments) -> EditorAnswer:
    """Return the variables of a scope, or the parts of a value."""
    handle = debuggee.values.at(arguments.needed_number("variablesReference"))
    first, count = arguments.number("start"), arguments.number("count") or MOST_PARTS
    wanted = arguments.text("filter")
    if handle.expression:
        is_paged = handle.parts >= PAGED_FROM
        if wanted and (wanted == "indexed") != is_paged:
            return EditorAnswer({"variables": []})
        found = _parts(debuggee, handle, first, min(count, MOST_PARTS))
    elif wanted == "indexed":
        found = []
    else:
        found = _of_scope(debuggee, handle)[first : first + count]
    return EditorAnswer({"variables": found})


def _of_scope(debuggee: Debuggee, handle: ValueHandle) -> list[dict[str, Any]]:
    frame = handle.frame
    session = debuggee.session_of(frame.process)
    lane = debuggee.lane_asked(frame.process, frame.lane)
    found = session.ask.variables(frame.frame, lane=lane, of_module=handle.of_module)
    shown = [each for each in found if not (each.name.startswith("__") and each.name.endswith("__"))]
    shown.sort(key=lambda each: each.type in _PLUMBING)
    return [described(debuggee, each, frame, each.name) for each in shown]


def _parts(debuggee: Debuggee, handle: ValueHandle, first: int, count: int) -> list[dict[str, Any]]:
    frame = handle.frame
    session = debuggee.session_of(frame.process)
    lane = debuggee.lane_asked(frame.process, frame.lane)

    def fetch(first: int, count: int) -> Sequence[Variable]:
        return session.ask.parts(handle.expression, frame.frame, lane=lane, first=first, most=count)

    found = debuggee.pages.page(handle, first, count, fetch)
    # An item of a set has no name, and no expression leads to it.
    return [
        described(debuggee, each, frame, _part(handle.expression, each.name) if each.name else "") for each in found
    ]


def _part(expression: str, name: str) -> str:
    return f"{expression}{name}" if is_primary(expression) else f"({expression}){name}"


def is_primary(expression: str) -> bool:
    """Whether `.name` or `[key]` may follow an expression as it is."""
    try:
        node = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.List, ast.Dict, ast.Set))


def described(debuggee: Debuggee, variable: Variable, frame: FrameHandle, expression: str) -> dict[str, Any]:
    """Return a value for the client; `expression` leads to it, empty: none does, and its parts cannot be asked for."""
    name = variable.name.removeprefix(".")
    found: dict[str, Any] = {
        "name": printable(name),
        "value": printable(variable.text),
        "type": printable(variable.type),
        "variablesReference": 0,
    }
    if expression:
        found["evaluateName"] = expression
        found |= reference(debuggee, frame, expression, variable.parts)
    return found


def reference(debuggee: Debuggee, frame: FrameHandle, expression: str, parts: int) -> dict[str, Any]:
    """Return the number by which the parts of a value can be asked for, and how many there are."""
    if not parts:
        return {"variablesReference": 0}
    number = debuggee.values.of(ValueHandle(frame, expression, parts=parts))
    kind = "indexedVariables" if parts >= PAGED_FROM else "namedVariables"
    return {"variablesReference": number, kind: parts}


def expression_of(debuggee: Debuggee, arguments: RequestArguments) -> tuple[FrameHandle, str]:
    """Return the frame and the expression of a variable that a client names by its container. Raises UsageError."""
    name = arguments.needed_text("name")
    if not arguments.has("variablesReference"):
        return debuggee.live_frame_at(arguments.number("frameId")), name
    container = debuggee.values.at(arguments.number("variablesReference"))
    if not container.expression:
        return container.frame, name
    if name.startswith("["):
        return container.frame, _part(container.expression, name)
    if not name.isidentifier():
        raise UsageError(f"{name!r} has no expression of its own, so it cannot be followed.")
    return container.frame, _part(container.expression, f".{name}")
