"""Questions about a run as a whole: all values of an expression, and when a condition was true."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from replaydbg.commands.places import parse_place
from replaydbg.commands.searching import predicate_of
from replaydbg.debugger.assertions import assertion_of_test, bisect_assertion
from replaydbg.debugger.bisection.bisect_results import Bisected, Culprit, VerdictChange
from replaydbg.debugger.bisection.run_bisection import begin_bisection
from replaydbg.debugger.bisection.true_stretches import TrueStretch, true_stretches
from replaydbg.debugger.source.place_expressions import names_read, places_read
from replaydbg.errors import UsageError
from replaydbg.mcp.answers import AgentAnswer, NextQuestion
from replaydbg.mcp.moment_questions import add_source
from replaydbg.mcp.open_recordings import OpenRecording
from replaydbg.mcp.tool_table import KINDS
from replaydbg.render import bisection_text, texts

MOST = 1000
"""The most values that are read for one answer."""

STRETCHES = 40
"""The most stretches of a run in which a condition was true."""


def watch(found: OpenRecording, answer: AgentAnswer, given: dict[str, Any]) -> None:
    """List the changes of a value."""
    found.go_to(given.get("at"), given.get("frame"), given.get("thread"))
    first = given.get("first", 1)
    history = found.session.run.history(given["expression"], **found.view.at, most=first + MOST)
    lines = (texts.change_text(found.session, each) for each in history)
    _add_numbered(answer, "changes", lines, "watch", given)
    if history.note:
        answer.left_out.append(history.note)


def log(found: OpenRecording, answer: AgentAnswer, given: dict[str, Any]) -> None:
    """Print an expression each time a line ran."""
    found.go_to(None, None, None)
    for name in ("expression", "condition"):
        _check_expression(given.get(name) or "None")
    file, line, _ = parse_place(found.view, given["place"], is_line=True)
    logged = found.session.run.log(file, line, given["expression"], condition=given.get("condition", ""))
    answer.add("place", [*found.text.take_lines(), f"{texts.file_text(found.session, file)}:{line}"])
    _add_numbered(answer, "printed", (texts.logged_text(found.session, each) for each in logged), "log", given)


def _add_numbered(answer: AgentAnswer, name: str, lines: Iterable[str], tool: str, given: dict[str, Any]) -> None:
    """Show lines from the number on that the question names; the next question shows those that are left out."""
    first = given.get("first", 1)
    shown = list(islice(lines, first - 1, first + MOST))
    answer.add(
        name,
        shown[:MOST] or ["none" if first == 1 else f"none from number {first:,} on"],
        keeps="ends",
        first=first,
        is_more=len(shown) > MOST,
        more=lambda number: NextQuestion(tool, {**given, "first": number}),
    )


def bisect(found: OpenRecording, answer: AgentAnswer, given: dict[str, Any]) -> None:
    """Find the line after which a condition became true."""
    found.go_to(None, None, None)
    session, result = found.session, _searched(found, given)
    answer.add("found", list(bisection_text.summary_lines(session, result)))
    culprit = result.culprit
    if culprit is not None:
        answer.at = texts.moment_text(culprit.moment)
        add_source(found, answer, culprit.file, culprit.line)
        answer.next += _questions_about(culprit, given)


def _searched(found: OpenRecording, given: dict[str, Any]) -> Bisected:
    session = found.session
    kinds = [each for each in KINDS if each in given]
    if len(kinds) > 1:
        raise UsageError(f"{kinds[0]} and {kinds[1]} cannot be combined.")
    first, last, is_linear = given.get("from"), given.get("to"), given.get("linear", False)
    if kinds:
        predicate = predicate_of(
            kinds[0], given[kinds[0]], module=given.get("module", ""), frame=given.get("frame", "")
        )
        search = begin_bisection(session, predicate, first, last, only_at=given.get("only_at", ""))
        return search.scan() if is_linear else search.run()
    claim = assertion_of_test(session)
    result = bisect_assertion(session, claim)
    if result is None:
        raise UsageError(
            "Give a condition: the failed assertion is the first line of its call, so no earlier line made it false."
        )
    return result


def _questions_about(culprit: Culprit, given: dict[str, Any]) -> list[NextQuestion]:
    """Propose to look at the line that was found, and to ask what it read."""
    there = {"recording": given["recording"], "at": texts.moment_text(culprit.moment)}
    names = dict.fromkeys((*places_read(culprit.source), *names_read(culprit.source)))
    return [
        NextQuestion("look", dict(there)),
        *(NextQuestion("why", {**there, "expression": each}) for each in names),
    ]


def check(found: OpenRecording, answer: AgentAnswer, given: dict[str, Any]) -> None:
    """Say whether an expression is true at a moment, or when it was true."""
    expression = given.get("expression", "")
    if not expression:
        raise UsageError("check needs 'expression', or 'current_source'.")
    _check_expression(expression)
    if "at" in given:
        _check_at(found, answer, given)
        return
    found.go_to(None, None, None)
    predicate = predicate_of("bad", expression, module=given.get("module", ""), frame=given.get("frame", ""))
    search = begin_bisection(
        found.session, predicate, given.get("from"), given.get("to"), only_at=given.get("only_at", "")
    )
    stretches = list(islice(true_stretches(search, STRETCHES), STRETCHES + 1))
    if len(stretches) > STRETCHES:
        answer.left_out.append(f"more than {STRETCHES} stretches: `from` continues")
    lines = [_stretch_text(found, each) for each in stretches[:STRETCHES]]
    if not lines:
        lines = [f"{expression}: true at no line of the search"]
        if reason := search.why_undecided():
            lines.append(f"at {texts.moment_text(search.end)}, its end, it cannot be evaluated: {reason}")
    answer.add("result", lines)
    if stretches and stretches[0].begin is not None:
        at = texts.moment_text(stretches[0].begin.moment)
        answer.next.append(NextQuestion("look", {"recording": given["recording"], "at": at}))


def _stretch_text(found: OpenRecording, stretch: TrueStretch) -> str:
    begin, end = _change_text(found, stretch.begin), _change_text(found, stretch.end)
    return (
        f"true {f'after {begin}' if begin else 'from the beginning'}{f', until after {end}' if end else ' to the end'}"
    )


def _change_text(found: OpenRecording, change: VerdictChange | None) -> str:
    if change is None:
        return ""
    place = texts.place_text(found.session, change.file, change.line, change.function)
    return f"{texts.moment_text(change.moment)} ({place})"


def _check_at(found: OpenRecording, answer: AgentAnswer, given: dict[str, Any]) -> None:
    """Evaluate an expression at a moment, in the innermost frame of a function if one is named."""
    found.go_to(given["at"], None, None)
    view, name, expression = found.view, given.get("frame", ""), given["expression"]
    if name:
        numbers = [at for at, each in enumerate(view.frames()) if name in (each.function, each.name)]
        if not numbers:
            raise UsageError(f"No call of {name!r} is on the stack at {given['at']}.")
        view.frame = numbers[0]
    answer.at = texts.moment_text(view.here.moment)
    result = view.evaluate(f"bool({expression})")
    value = view.evaluate(expression).value
    verdict = f"cannot be evaluated: {result.error}" if result.value is None else result.value.text
    answer.add("result", [f"{expression}: {verdict}", *([f"value: {value.text}"] if value is not None else [])])


def _check_expression(text: str) -> None:
    try:
        compile(text, "<expression>", "eval")
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{text!r} is not a valid expression: {error}.") from None
