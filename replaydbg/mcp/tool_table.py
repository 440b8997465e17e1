"""The tools: each is a question, with its arguments as a JSON schema."""

from __future__ import annotations

from replaydbg.classes import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Schema = dict[str, Any]

KINDS = ("bad", "check", "raises", "invariant", "output")
"""The conditions that `bisect` takes, as its namesake on the command line does."""

SHOWN = ("events", "output", "exceptions", "threads", "tasks", "args", "longlist", "resources")
"""Words of the prompt that `look` takes."""

_LINES: Schema = {"type": "array", "items": {"type": "string"}}

OUTPUT: Schema = {
    "type": "object",
    "properties": {
        "notice": {"type": "string"},
        "recording": {"type": "string"},
        "at": {"type": "string"},
        "recorded": {"type": "object", "additionalProperties": _LINES},
        "problem": {"type": "string"},
        "left_out": _LINES,
        "next": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"tool": {"type": "string"}, "arguments": {"type": "object"}},
                "required": ["tool", "arguments"],
            },
        },
    },
    "required": ["notice", "recorded", "left_out", "next"],
}
"""The form of every answer."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as clients see it."""

    name: str
    title: str
    description: str
    properties: Schema
    needed: tuple[str, ...] = ()
    """The arguments that must be given."""
    runs_live: bool = False
    """Whether it runs a program, and not a replay of one."""

    def as_json(self) -> Schema:
        """Return it as `tools/list` has it."""
        schema: Schema = {"type": "object", "properties": self.properties, "additionalProperties": False}
        if self.needed:
            schema["required"] = list(self.needed)
        hints: Schema = {"readOnlyHint": not self.runs_live, "openWorldHint": self.runs_live}
        hints |= {"destructiveHint": True} if self.runs_live else {"idempotentHint": True}
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": schema,
            "outputSchema": OUTPUT,
            "annotations": {"title": self.title, **hints},
        }


def _text(description: str, **more: object) -> Schema:
    return {"type": "string", "description": description, **more}


def _number(description: str, least: int) -> Schema:
    return {"type": "integer", "minimum": least, "description": description}


def _texts(description: str, **more: object) -> Schema:
    return {"type": "array", "items": {"type": "string", **more}, "description": description}


_RECORDING: Schema = {
    "recording": _text(
        "a name such as run-12, a path, latest (default: latest), run-12/3 (process 3 of a group), or the directory of "
        "a failed test's result"
    )
}
_PLACE: Schema = {
    "at": _text("the moment, such as 120:35, @exc, @end or @out:17 (default: the failure, else the end)"),
    "frame": _number("the Nth frame, counted from the innermost, 0 (default: the one that failed)", 0),
    "thread": _number("the number of a thread (default: the running one)", 0),
}
_RANGE: Schema = {
    "frame": _text("evaluate with the local variables of this function, while it runs (default: none)"),
    "module": _text("evaluate in this module (default: __main__)"),
    "only_at": _text("evaluate only before this FILE:LINE, or at the start of each call of this function"),
    "from": _text("the first moment of the search (default: @start)"),
    "to": _text("the last moment of the search (default: the failure, else the end)"),
}
_EXPRESSION = "a variable, attribute or item, such as order.lines[0].price"

_TOOLS = (
    Tool(
        "recordings",
        "List recordings",
        "List recorded runs, newest first: name, time, how the run ended, number of events, command. Runs nothing.",
        {
            "failed": {"type": "boolean", "description": "true: only runs that failed; false: only runs that did not"},
            "exception": _text("only programs that ended with this uncaught exception"),
            "command": _text("only commands that contain this text"),
            "first": _number("begin with the Nth recording of the list (default: 1)", 1),
        },
    ),
    Tool(
        "failure",
        "How did it fail?",
        "Show where a run failed: the exception, the stack, the source, the values, which line wrote each value that "
        "the failing line reads, and the output. Begin with this.",
        _RECORDING,
    ),
    Tool(
        "why",
        "Which line wrote this value?",
        "Find the line that last wrote a value before a moment, what it was before, and what it was made of: values, "
        "calls, and inputs such as files, the network, the clock. Follow a wrong value back with it.",
        {"expression": _text(_EXPRESSION), **_RECORDING, **_PLACE},
        ("expression",),
    ),
    Tool(
        "watch",
        "List all values of an expression",
        "List every change of a value over the whole run, with the line that made it.",
        {
            "expression": _text(_EXPRESSION),
            **_RECORDING,
            **_PLACE,
            "first": _number("begin with the Nth change (default: 1)", 1),
        },
        ("expression",),
    ),
    Tool(
        "log",
        "Print an expression each time a line ran",
        "Evaluate an expression each time a line is about to run, over the whole run, as if a print had been there.",
        {
            "place": _text("FILE:LINE; the end of the path is enough"),
            "expression": _text("a Python expression, such as (i, total)"),
            "condition": _text("print only when this expression is true"),
            **_RECORDING,
            "first": _number("begin with the Nth line that is printed (default: 1)", 1),
        },
        ("place", "expression"),
    ),
    Tool(
        "look",
        "Show one moment",
        "Show a moment: stack, source, local variables, threads. With `expressions`: their values there.",
        {
            **_RECORDING,
            **_PLACE,
            "expressions": _texts("Python expressions to evaluate in a throw-away copy of the program"),
            "show": _texts("more to show", enum=list(SHOWN)),
        },
    ),
    Tool(
        "bisect",
        "Which line made a condition true?",
        "Find the line after which a condition became true, and what that line changed, over the run up to its "
        "failure. Give one condition; for a failing test the default is that its assertion is false.",
        {
            "bad": _text("an expression that is true when the run is bad"),
            "check": _text("an expression that is false when the run is bad"),
            "raises": _text("an expression that raises when the run is bad, or the name of an exception"),
            "invariant": _text("the name of an invariant that the program passed to replaydbg.check()"),
            "output": _text("a regular expression: bad once the output matches it"),
            **_RECORDING,
            **_RANGE,
            "linear": {"type": "boolean", "description": "check every line: also finds what was true only for a while"},
        },
    ),
    Tool(
        "check",
        "Is this true?",
        "Test a hypothesis. With `at`: evaluate the expression at that moment. Without: list when it was true over the "
        "whole run. With `current_source`: replay today's source files on the recorded inputs, and return whether the "
        "failure is gone (with an expression: whether that is true at exit). A replay changes nothing outside.",
        {
            "expression": _text("a Python expression"),
            **_RECORDING,
            "at": _text("the moment at which to evaluate it (default: over the whole run)"),
            **_RANGE,
            "current_source": {"type": "boolean", "description": "test the files as they are on the disk now"},
        },
    ),
    Tool(
        "run",
        "Run a program and record it",
        "Run a program, live, and record it: `record` once, `hunt` until it fails once and passes once, `futures` to "
        "let a recorded program go on from a moment many times.",
        {
            "command": _text("what to do", enum=["record", "hunt", "futures"]),
            "arguments": _texts("the words that follow `replaydbg COMMAND` on the command line, such as ['prog.py']"),
            "directory": _text("where to run it (default: the server's directory)"),
        },
        ("command", "arguments"),
        runs_live=True,
    ),
)


def tools_offered(*, is_run_allowed: bool) -> dict[str, Tool]:
    """Return the tools by their names; those that run a program only if that is allowed."""
    return {each.name: each for each in _TOOLS if is_run_allowed or not each.runs_live}
