"""Questions about one moment: why does a value have its value, and what does the moment look like?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from replaydbg.commands import inspecting
from replaydbg.debugger.session_results import LastWrite
from replaydbg.debugger.source.place_expressions import names_read, places_read
from replaydbg.errors import ReplaydbgError
from replaydbg.mcp.answers import AgentAnswer, NextQuestion
from replaydbg.mcp.open_recordings import OpenRecording
from replaydbg.render import texts

FRAMES = 12
"""Frames that are shown of a stack."""

AROUND = 4
"""Lines of source that are shown on both sides of a line that wrote a value."""

_NOT_SHOWN = ("module", "function", "type", "builtin_function_or_method", "_Feature")
"""Types of variables that say nothing of a failure."""


def why(found: OpenRecording, answer: AgentAnswer, given: dict[str, Any]) -> None:
    """Show the last write of a value."""
    found.go_to(given.get("at"), given.get("frame"), given.get("thread"))
    write = found.session.run.why(given["expression"], **found.view.at)
    add_write(found, answer, given, write, "write")
    last = write.content if write.content is not None and write.content.moment is not None else write
    answer.at = texts.moment_text(last.moment if last.moment is not None else found.view.here.moment)
    if last.moment is not None:
        add_source(found, answer, last.file, last.line)


def look(found: OpenRecording, answer: AgentAnswer, given: dict[str, Any]) -> None:
    """Show a moment, or the values of expressions there."""
    found.go_to(given.get("at"), given.get("frame"), given.get("thread"))
    expressions, words = given.get("expressions", []), given.get("show", [])
    if expressions:
        answer.add("position", _position(found))
        answer.add("values", [_valued(found, each) for each in expressions])
        answer.at = texts.moment_text(found.view.here.moment)
    elif not words:
        add_moment(found, answer)
        answer.next += questions_about(found, given, line_here(found))
    for each in words:
        answer.add(each, found.words(each), keeps="tail" if each in ("events", "output", "exceptions") else "head")


def add_moment(found: OpenRecording, answer: AgentAnswer) -> None:
    """Show the position, the stack, the source, the variables, and the threads if there are several."""
    view = found.view
    answer.at = texts.moment_text(view.here.moment)
    answer.add("position", _position(found))
    if view.frames():
        answer.add("stack", found.words(f"where {FRAMES}"))
        at = view.place()
        add_source(found, answer, at.file, at.line)
        variables = view.session.ask.variables(**view.at)
        inspecting.print_variables(view, [each for each in variables if each.type not in _NOT_SHOWN])
        answer.add("variables", found.text.take_lines())
    if len(view.here.lanes) > 1 or view.session.ask.tasks():
        answer.add("threads", found.words("threads"))


def add_source(found: OpenRecording, answer: AgentAnswer, file: str, line: int) -> None:
    """Show the source around a line."""
    found.text.take_lines()
    found.view.show_source(file, line - AROUND, line + AROUND, line)
    answer.add("source", found.text.take_lines())


def _position(found: OpenRecording) -> list[str]:
    session, here = found.session, found.view.here
    return [each for each in (texts.here_text(session, here), texts.reason_text(session, here)) if each]


def _valued(found: OpenRecording, expression: str) -> str:
    """Return an expression with its value, or with the reason why it has none."""
    try:
        lines = found.words(f"print {expression}")
    except ReplaydbgError as error:
        return f"{expression}: {error}"
    return f"{expression} = {' '.join(lines) if lines else None}"


def add_write(found: OpenRecording, answer: AgentAnswer, given: dict[str, Any], write: LastWrite, name: str) -> None:
    """Show a write, and propose to ask what the value came from."""
    answer.add(name, [each.text for each in texts.why_report(found.session, write, found.view.group)])
    last = write.content if write.content is not None else write
    if last.moment is None:
        return
    for expression, moment in texts.to_follow(write):
        answer.next.append(_why(given, expression, texts.moment_text(moment)))
    for _, end in texts.senders_of(found.session, last, found.view.group):
        group = given["recording"].rpartition("/")[0]
        at = {"at": f"{end.event}:0"} if end.event else {}
        answer.next.append(NextQuestion("look", {"recording": f"{group}/{end.process}", **at}))


def line_here(found: OpenRecording) -> list[str]:
    """Return the places that the line of the selected frame reads: `a.b`, `a[0]`, and variables."""
    if not found.view.frames():
        return []
    at = found.view.place()
    source = found.session.source_line(at.file, at.line)
    places = places_read(source)
    variables = {each.name: each.type for each in found.session.ask.variables(**found.view.at)}
    names = [each for each in names_read(source) if variables.get(each, "module") not in _NOT_SHOWN]
    return list(dict.fromkeys((*places, *names)))


def questions_about(found: OpenRecording, given: dict[str, Any], names: Iterable[str]) -> list[NextQuestion]:
    """Return questions why some values are as they are, in the selected frame."""
    at = texts.moment_text(found.view.here.moment)
    more: dict[str, Any] = {"frame": found.view.frame} if found.view.frame else {}
    if found.view.lane is not None:
        more["thread"] = found.view.lane
    return [_why(given, each, at, **more) for each in names]


def _why(given: dict[str, Any], expression: str, at: str, **more: Any) -> NextQuestion:
    return NextQuestion("why", {"recording": given["recording"], "expression": expression, "at": at, **more})
