"""Commands for breakpoints."""

from __future__ import annotations

import re

from replaydbg.commands.places import function_named, parse_place, split_condition, split_rule
from replaydbg.commands.view import View
from replaydbg.commands.vocabulary import PromptCommand
from replaydbg.debugger.breakpoints import parse_rule
from replaydbg.debugger.exception_types import ANY, is_by_own_code, raised_as
from replaydbg.debugger.session_results import Breakpoint
from replaydbg.errors import UsageError


def _break(view: View, rest: str) -> None:
    if rest.strip():
        _add(view, rest, is_temporary=False)
    else:
        breakpoints(view, "")


def _tbreak(view: View, rest: str) -> None:
    _add(view, rest, is_temporary=True)


def _add(view: View, rest: str, *, is_temporary: bool) -> None:
    where, condition = split_condition(rest)
    where, hits = split_rule(where)
    if _is_exception(view, where):
        _add_exception(view, Breakpoint(0, exception=where, condition=condition, hits=hits, temporary=is_temporary))
        return
    file, line, function = parse_place(view, where)
    _add_point(view, Breakpoint(0, file, line, function, condition=condition, hits=hits, temporary=is_temporary))


def _is_exception(view: View, word: str) -> bool:
    """Whether `word` is an exception type and not a function."""
    if not all(each.isidentifier() for each in word.split(".")):
        return False
    try:
        function_named(view, word)
    except UsageError:
        return bool(view.session.types_named(word))
    return False


def _catch(view: View, rest: str) -> None:
    where, condition = split_condition(rest)
    where, hits = split_rule(where)
    words = where.split()
    is_own = words[:1] == ["own"]
    words = words[is_own:]
    # As in gdb: catch throw, catch exception NAME.
    if words and words[0] in ("throw", "raise", "exception", "catch"):
        words = words[1:]
    if len(words) > 1:
        raise UsageError("usage: catch [own] [TYPE] [%N] [if CONDITION]")
    name = words[0] if words else ANY
    if not view.session.types_named(name):
        raise UsageError(f"Unknown exception type: {name}.")
    point = Breakpoint(0, exception=name, is_own=is_own, own_code=view.own_code, condition=condition, hits=hits)
    number = _add_exception(view, point)
    where = "by your own code" if is_own else "including libraries and imports"
    often = "once" if number == 1 else f"{number:,} times"
    view.screen.line(f"Raised {often} in the whole run, {where}.", "dim")


def _add_exception(view: View, point: Breakpoint) -> int:
    """Add it, and return how many exceptions it is for."""
    raised = list(raised_as(view.session, point.exception))
    number = sum(1 for each in raised if not point.is_own or is_by_own_code(each, point.own_code))
    if not number:
        name = "exception" if point.exception == ANY else point.exception
        by = " by your own code" if point.is_own else ""
        others = (
            f" Libraries raised it {'once' if len(raised) == 1 else f'{len(raised):,} times'}: see `exceptions"
            f"{'' if point.exception == ANY else f' {point.exception}'}`, or count files of a package as yours"
            " by the setting `my_code`."
        )
        raise UsageError(f"No {name} was raised in this run{by}.{others if raised else ''}")
    _add_point(view, point)
    return number


def _add_point(view: View, point: Breakpoint) -> None:
    added = view.session.breakpoints.add(point)
    view.screen.line(("Temporary breakpoint " if added.temporary else "Breakpoint ") + _text(added))


def _text(point: Breakpoint, *commanded: str) -> str:
    more = [
        *(["disabled"] if not point.enabled else []),
        *([f"ignores the next {point.ignore}"] if point.ignore else []),
        *(["once"] if point.temporary else []),
        *commanded,
    ]
    return f"{point.number}: {point}" + (f" ({', '.join(more)})" if more else "")


def breakpoints(view: View, rest: str) -> None:
    """Print the breakpoints."""
    if not view.session.breakpoints:
        view.screen.line("No breakpoints. `break FILE:LINE` or `break FUNCTION` sets one.")
    for point in view.session.breakpoints:
        commands = view.commands.get(point.number)
        view.screen.line(_text(point, f"runs {'; '.join(commands)}") if commands else _text(point))


def _clear(view: View, rest: str) -> None:
    words = rest.replace(",", " ").split()
    if not words:
        numbers = [each.number for each in view.session.breakpoints]
        if not numbers:
            raise UsageError("No breakpoints.")
    elif all(each.isdecimal() for each in words):
        numbers = [int(each) for each in words]
    else:
        numbers = _at(view, rest)
    for number in numbers:
        removed = view.session.breakpoints.remove(number)
        view.commands.pop(number, None)
        view.screen.line(f"Removed breakpoint {_text(removed)}")


def _at(view: View, rest: str) -> list[int]:
    place = parse_place(view, rest)
    numbers = [each.number for each in view.session.breakpoints if (each.file, each.line, each.function) == place]
    if not numbers:
        raise UsageError(f"No breakpoint at {rest.strip()}.")
    return numbers


def _numbers(view: View, rest: str) -> list[int]:
    words = rest.replace(",", " ").split()
    if not all(each.isdecimal() for each in words):
        raise UsageError(f"Breakpoint numbers expected (got {rest.strip()!r}).")
    return [int(each) for each in words] or [each.number for each in view.session.breakpoints]


def _enable(view: View, rest: str) -> None:
    for number in _numbers(view, rest):
        view.screen.line(_text(view.session.breakpoints.change(number, enabled=True)))


def _disable(view: View, rest: str) -> None:
    for number in _numbers(view, rest):
        view.screen.line(_text(view.session.breakpoints.change(number, enabled=False)))


def _condition(view: View, rest: str) -> None:
    number, condition = _number_and_rest(rest, "condition NUMBER [EXPRESSION]")
    if condition:
        try:
            compile(condition, "<condition>", "eval")
        except (SyntaxError, ValueError) as error:
            raise UsageError(f"The condition {condition!r} is not valid Python: {error}.") from None
    view.screen.line(_text(view.session.breakpoints.change(number, condition=condition)))


def _ignore(view: View, rest: str) -> None:
    number, count = _number_and_rest(rest, "ignore NUMBER COUNT")
    if count and not count.isdecimal():
        raise UsageError(f"COUNT must be a number (got {count!r}).")
    view.screen.line(_text(view.session.breakpoints.change(number, ignore=int(count or 0))))


def _hits(view: View, rest: str) -> None:
    number, text = _number_and_rest(rest, "hits NUMBER [RULE]")
    hits = str(parse_rule(text)) if text else ""
    view.screen.line(_text(view.session.breakpoints.change(number, hits=hits)))


def _commands(view: View, rest: str) -> None:
    points = {each.number: each for each in view.session.breakpoints}
    word = rest.strip()
    if not points:
        raise UsageError("No breakpoints.")
    if word and not word.isdecimal():
        raise UsageError(f"NUMBER must be the number of a breakpoint (got {word!r}).")
    number = int(word or max(points))
    if number not in points:
        raise UsageError(f"No breakpoint {number}.")
    view.commands[number] = []
    view.commanded = number
    view.screen.line(f"Commands for breakpoint {number}, one per line; end with `end`:", "dim")


def add_command(view: View, line: str) -> None:
    """Take a line of those that are done wherever a breakpoint stops it."""
    if line == "end":
        view.commanded = 0
    elif line and line != "silent":
        view.commands[view.commanded].append(line)


def _number_and_rest(rest: str, usage: str) -> tuple[int, str]:
    match = re.match(r"\s*(\d+)\s*(.*)\Z", rest, re.S)
    if match is None:
        raise UsageError(f"usage: {usage}")
    return int(match[1]), match[2].strip()


COMMANDS = (
    PromptCommand(
        ("break", "b"),
        "[PLACE [%N] [if COND]]",
        "stop at a line, function or exception, in both directions (default: list)",
        _break,
        completes="places",
    ),
    PromptCommand(("tbreak",), "PLACE [%N] [if COND]", "set a breakpoint that stops once", _tbreak, completes="places"),
    PromptCommand(
        ("catch",),
        "[own] [TYPE] [%N] [if COND]",
        "stop where exceptions of a type are raised",
        _catch,
        completes="exceptions",
    ),
    PromptCommand(
        ("clear", "cl", "delete"),
        "[NUMBER ... | PLACE]",
        "remove breakpoints (default: all)",
        _clear,
        completes="places",
    ),
    PromptCommand(
        ("condition",),
        "NUMBER [COND]",
        "stop at a breakpoint only if COND is true",
        _condition,
        completes="numbered",
    ),
    PromptCommand(
        ("ignore",),
        "NUMBER COUNT",
        "ignore the first COUNT stops of a breakpoint in each motion",
        _ignore,
        completes="",
    ),
    PromptCommand(
        ("hits",),
        "NUMBER [RULE]",
        "stop only at some hits of the whole run: %N (every Nth), ==N, >N, >=N, <N or <=N (default: at all)",
        _hits,
        completes="",
    ),
    PromptCommand(
        ("commands",),
        "[NUMBER]",
        "read commands up to `end`, and run them at each stop of a breakpoint",
        _commands,
        completes="",
    ),
    PromptCommand(("enable",), "[NUMBER ...]", "enable breakpoints", _enable, completes=""),
    PromptCommand(("disable",), "[NUMBER ...]", "disable breakpoints without removing them", _disable, completes=""),
)
