"""Breakpoints: each request of a client replaces those that the one before it has set."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from replaydbg.commands.places import function_named, parse_place, split_condition, split_rule
from replaydbg.dap.capabilities import OF_TYPE, RAISED, RAISED_ANYWHERE, UNCAUGHT
from replaydbg.dap.debuggee import DataPoint, Debuggee
from replaydbg.dap.editor_answers import EditorAnswer
from replaydbg.dap.log_points import LogPoint, log_point
from replaydbg.dap.requests.value_requests import expression_of
from replaydbg.dap.wire.request_arguments import RequestArguments
from replaydbg.debugger.breakpoints import parse_rule
from replaydbg.debugger.exception_types import ANY, raised_as
from replaydbg.debugger.session_results import Breakpoint
from replaydbg.errors import AskFailed, NoSuchMoment, UsageError
from replaydbg.events.show import printable

_Set = Callable[[RequestArguments], dict[str, Any]]


def _replace(debuggee: Debuggee, key: str, wanted: Iterable[RequestArguments], set_one: _Set) -> list[dict[str, Any]]:
    """Remove the breakpoints of a key, set those that are wanted, and return each for the client."""
    known = {each.number for each in debuggee.session.breakpoints}
    for number in debuggee.points.pop(key, []):
        if number in known:  # the console's `clear` may have removed it
            debuggee.session.breakpoints.remove(number)
    numbers = debuggee.points.setdefault(key, [])
    found = []
    for each in wanted:
        try:
            row = set_one(each)
        except (UsageError, AskFailed, NoSuchMoment) as error:
            row = {"verified": False, "message": printable(str(error)), "reason": "failed"}
        if "id" in row:
            numbers.append(row["id"])
        found.append(row)
        debuggee.console.take()
    return found


def _added(debuggee: Debuggee, point: Breakpoint, **more: Any) -> dict[str, Any]:
    added = debuggee.session.breakpoints.add(point)
    return {"id": added.number, "verified": True, **more}


def _rule(arguments: RequestArguments) -> str:
    text = arguments.text("hitCondition").strip()
    return str(parse_rule(text)) if text else ""


# ---- lines and functions ----


def set_breakpoints(debuggee: Debuggee, arguments: RequestArguments) -> EditorAnswer:
    """Set the breakpoints of a file; what log points print is sent when that has been answered."""
    source, wanted = arguments.object("source"), arguments.objects("breakpoints")
    if not wanted and arguments.has("lines"):
        raise UsageError("setBreakpoints needs 'breakpoints'; 'lines' is deprecated.")
    try:
        file = debuggee.sources.file_named(debuggee.session, source)
    except UsageError as error:
        row = {"verified": False, "message": printable(str(error)), "reason": "failed"}
        return EditorAnswer({"breakpoints": [row] * len(wanted)})
    log_points: list[LogPoint] = []
    set_one = _line_setter(debuggee, file, source, log_points)
    found = _replace(debuggee, f"lines {file}", wanted, set_one)
    new = [each for each in log_points if each.key not in debuggee.logged.get(file, set())]
    debuggee.logged[file] = {each.key for each in log_points}
    return EditorAnswer({"breakpoints": found}, work=(lambda: _print(debuggee, new)) if new else None)


def _line_setter(debuggee: Debuggee, file: str, source: RequestArguments, log_points: list[LogPoint]) -> _Set:
    def set_one(wanted: RequestArguments) -> dict[str, Any]:
        line = debuggee.line_of_client(wanted.needed_number("line"))
        place = parse_place(debuggee.view, f"{file}:{line}")
        condition, hits = wanted.text("condition").strip(), _rule(wanted)
        note = debuggee.console.take()  # that another line is the next one that ran
        where = {
            "line": debuggee.line_for_client(place.line),
            "source": debuggee.sources.source(debuggee.session, file),
        }
        where |= {"message": note} if note else {}
        if wanted.text("logMessage"):
            log_points.append(log_point(file, place.line, wanted.text("logMessage"), condition, hits))
            return {"verified": True, **where}
        return _added(debuggee, Breakpoint(0, file, place.line, condition=condition, hits=hits), **where)

    return set_one


def _print(debuggee: Debuggee, points: Iterable[LogPoint]) -> None:
    for each in points:
        for text, line in each.printed(debuggee.session, debuggee.check):
            place = {"source": debuggee.sources.source(debuggee.session, each.file)}
            debuggee.print_in_console(text, **place, line=debuggee.line_for_client(line))


def breakpoint_locations(debuggee: Debuggee, arguments: RequestArguments) -> EditorAnswer:
    """Return the lines of a stretch of a file that ran."""
    file = debuggee.sources.file_named(debuggee.session, arguments.object("source"))
    first = debuggee.line_of_client(arguments.needed_number("line"))
    last = debuggee.line_of_client(arguments.number("endLine")) if arguments.has("endLine") else first
    lines = sorted(each for each in debuggee.session.index.lines_hit(file) if first <= each <= last)
    return EditorAnswer({"breakpoints": [{"line": debuggee.line_for_client(each)} for each in lines]})


def set_function_breakpoints(debuggee: Debuggee, arguments: RequestArguments) -> EditorAnswer:
    """Set the breakpoints at functions."""

    def set_one(wanted: RequestArguments) -> dict[str, Any]:
        name = function_named(debuggee.view, wanted.needed_text("name").strip())
        condition = wanted.text("condition").strip()
        return _added(debuggee, Breakpoint(0, function=name, condition=condition, hits=_rule(wanted)))

    found = _replace(debuggee, "functions", arguments.objects("breakpoints"), set_one)
    return EditorAnswer({"breakpoints": found})


# ---- exceptions ----


def set_exception_breakpoints(debuggee: Debuggee, arguments: RequestArguments) -> EditorAnswer:
    """Set the breakpoints at exceptions."""
    plain = [RequestArguments({"filterId": each}) for each in arguments.texts("filters")]
    found = _replace(
        debuggee,
        "exceptions",
        [*plain, *arguments.objects("filterOptions")],
        lambda wanted: _added(debuggee, _exception_point(debuggee, wanted)),
    )
    return EditorAnswer({"breakpoints": found})


def _exception_point(debuggee: Debuggee, wanted: RequestArguments) -> Breakpoint:
    name, condition = wanted.needed_text("filterId"), wanted.text("condition").strip()
    if name == RAISED:
        return Breakpoint(0, exception=ANY, is_own=True, own_code=debuggee.view.own_code, condition=condition)
    if name == RAISED_ANYWHERE:
        return Breakpoint(0, exception=ANY, condition=condition)
    if name == OF_TYPE:
        return _point_of_type(debuggee, condition)
    if name == UNCAUGHT:
        return _uncaught(debuggee)
    raise UsageError(f"Unknown exception filter: {name!r}.")


def _point_of_type(debuggee: Debuggee, text: str) -> Breakpoint:
    where, condition = split_condition(text)
    where, hits = split_rule(where)
    words = where.split()
    is_own = words[:1] == ["own"]
    words = words[is_own:]
    if len(words) != 1:
        raise UsageError("usage: [own] TYPE [%N] [if CONDITION]")
    if not debuggee.session.types_named(words[0]):
        raise UsageError(f"Unknown exception type: {words[0]}.")
    own_code = debuggee.view.own_code
    return Breakpoint(0, exception=words[0], is_own=is_own, own_code=own_code, condition=condition, hits=hits)


def _uncaught(debuggee: Debuggee) -> Breakpoint:
    """Return the breakpoint at the one exception that ended the program: at its number among those of its type."""
    session = debuggee.session
    failure = session.failure
    if failure is None:
        raise UsageError("No exception ended the program, or made a test fail.")
    name = next(iter(failure.lineage), failure.type)
    lines = sorted({each.count for each in raised_as(session, name)})
    if failure.count not in lines:
        raise UsageError(f"The line that raised {failure.type} is unknown.")
    return Breakpoint(0, exception=name, hits=f"=={lines.index(failure.count) + 1}")


# ---- values ----


def data_breakpoint_info(debuggee: Debuggee, arguments: RequestArguments) -> EditorAnswer:
    """Return whether a value can be followed, and the name under which a breakpoint is set on it."""
    try:
        frame, expression = expression_of(debuggee, arguments)
        session = debuggee.session_of(frame.process)
        if session is not debuggee.session:
            raise UsageError("A value of another process cannot be followed: select that process first.")
        lane = debuggee.lane_asked(frame.process, frame.lane)
        point = session.run.watch(expression, frame.frame, lane=lane)
    except (UsageError, AskFailed) as error:
        return EditorAnswer({"dataId": None, "description": printable(str(error))})
    session.breakpoints.remove(point.number)
    data = DataPoint(replace(point, number=0), frame.process)
    known = (key for key, each in debuggee.data_points.items() if replace(each, number=0) == data)
    name = next(known, f"{expression} {len(debuggee.data_points) + 1}")
    debuggee.data_points.setdefault(name, data)
    return EditorAnswer(
        {"dataId": name, "description": printable(expression), "accessTypes": ["write"], "canPersist": False}
    )


def set_data_breakpoints(debuggee: Debuggee, arguments: RequestArguments) -> EditorAnswer:
    """Set the breakpoints on values."""

    def set_one(wanted: RequestArguments) -> dict[str, Any]:
        name = wanted.needed_text("dataId")
        if name not in debuggee.data_points:
            raise UsageError(f"Unknown data id: {name!r}.")
        if wanted.text("accessType", "write") != "write":
            raise UsageError("Only changes of a value can be followed, not reads of it.")
        known = debuggee.data_points[name]
        point = replace(known.point, condition=wanted.text("condition").strip(), hits=_rule(wanted))
        row = _added(debuggee, point)
        debuggee.data_points[name] = replace(known, number=row["id"])
        return row

    found = _replace(debuggee, "data", arguments.objects("breakpoints"), set_one)
    return EditorAnswer({"breakpoints": found})
