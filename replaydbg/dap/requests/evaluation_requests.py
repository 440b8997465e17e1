"""Expressions, the words of the console, and what completes them."""

from __future__ import annotations

import ast
from typing import Any

from replaydbg.commands.completion.completer import complete
from replaydbg.dap.debuggee import Debuggee
from replaydbg.dap.editor_answers import EditorAnswer
from replaydbg.dap.handles import FrameHandle
from replaydbg.dap.requests.value_requests import reference
from replaydbg.dap.wire.request_arguments import RequestArguments
from replaydbg.debugger.session_results import Evaluation
from replaydbg.errors import AskFailed, UsageError
from replaydbg.events.show import printable

CONSOLE, CLIPBOARD = "repl", "clipboard"
"""Contexts of an evaluation; all others take an expression and show its value."""


def evaluate(debuggee: Debuggee, arguments: RequestArguments) -> EditorAnswer:
    """Evaluate an expression in a throw-away copy of the program; the console takes the debugger's own words, too."""
    text, context = arguments.needed_text("expression").strip(), arguments.text("context")
    if context == CONSOLE and not _is_expression(debuggee, text):
        return _of_console(debuggee, text, arguments.number("frameId"))
    if context == CONSOLE:
        debuggee.select_for_console(arguments.number("frameId"))
        view = debuggee.view
        lane = view.here.lane if view.lane is None else view.lane
        handle = FrameHandle(view.process, lane, view.frame)
    else:
        handle = debuggee.live_frame_at(arguments.number("frameId"))
    result = _evaluation(debuggee, handle, f"print(repr({text}))" if context == CLIPBOARD else text)
    if result.error is not None:
        raise AskFailed(f"it raised {result.error}")
    printed = "\n".join(printable(each.expandtabs()) for each in result.output.removesuffix("\n").split("\n"))
    if context == CLIPBOARD:
        return EditorAnswer({"result": printed, "variablesReference": 0})
    return EditorAnswer(_value(debuggee, handle, text, result, printed))


def _evaluation(debuggee: Debuggee, handle: FrameHandle, text: str) -> Evaluation:
    session = debuggee.session_of(handle.process)
    return session.ask.evaluate(text, handle.frame, lane=debuggee.lane_asked(handle.process, handle.lane))


def _value(debuggee: Debuggee, handle: FrameHandle, text: str, result: Evaluation, printed: str) -> dict[str, Any]:
    value = result.value
    shown = printable(value.text) if value is not None else ""
    if printed:
        shown = printed if value is None or value.type == "NoneType" else f"{printed}\n{shown}"
    found: dict[str, Any] = {"result": shown, "variablesReference": 0}
    if value is not None:
        found |= {"type": printable(value.type), **reference(debuggee, handle, text, value.parts)}
    return found


def _is_expression(debuggee: Debuggee, text: str) -> bool:
    """Whether a line of the console is an expression of Python, and no word of the debugger's."""
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    if text.isidentifier() or debuggee.view.commanded:
        return False  # what is neither a word nor a variable gets an answer that names the nearest word
    return debuggee.prompt.split(text)[0] is None


def _of_console(debuggee: Debuggee, text: str, frame: int) -> EditorAnswer:
    debuggee.select_for_console(frame)
    before = debuggee.position
    try:
        for line in text.splitlines() if debuggee.view.commanded else [text]:
            debuggee.prompt.carry_out(line.strip())
    except EOFError:
        return EditorAnswer({"result": debuggee.console.take(), "variablesReference": 0}, is_end=True)
    finally:
        printed = debuggee.console.take()
    stop = debuggee.reason if debuggee.position != before else ""
    return EditorAnswer({"result": printed, "variablesReference": 0}, stop=stop)


def completions(debuggee: Debuggee, arguments: RequestArguments) -> EditorAnswer:
    """Return what may follow in a line of the console."""
    debuggee.select_for_console(arguments.number("frameId"))
    number = debuggee.line_of_client(arguments.number("line", debuggee.client.first_line))
    lines = arguments.text("text").split("\n")
    if not 1 <= number <= len(lines):
        raise UsageError(f"line must be from 1 to {len(lines):,}, the lines of the text (got {number}).")
    line = lines[number - 1]
    column = arguments.needed_number("column") - debuggee.client.first_column
    cursor = max(0, min(_character(line, column), len(line)))
    found = complete(debuggee.prompt, line, cursor)
    start = len(line[: found.start].encode("utf-16-le", "surrogatepass")) // 2 + debuggee.client.first_column
    length = len(line[found.start : cursor].encode("utf-16-le", "surrogatepass")) // 2
    targets = [{"label": each, "text": each, "start": start, "length": length} for each in found.words]
    return EditorAnswer({"targets": targets})


def _character(line: str, units: int) -> int:
    """Return the index of a character; the protocol counts in units of UTF-16."""
    encoded = line.encode("utf-16-le", "surrogatepass")[: 2 * max(units, 0)]
    return len(encoded.decode("utf-16-le", "ignore"))
