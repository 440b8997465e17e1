"""Commands that query the whole run: writes of a value, its history, output, and inputs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from replaydbg.classes import dataclass
from replaydbg.commands.motion import go_to, number_of
from replaydbg.commands.places import parse_place
from replaydbg.commands.searching import parse_search
from replaydbg.commands.task_tree import task_tree
from replaydbg.commands.view import View
from replaydbg.commands.vocabulary import PromptCommand, expression_in
from replaydbg.debugger.bisection.run_bisection import Bisection
from replaydbg.debugger.bisection.true_stretches import TrueStretch, true_stretches
from replaydbg.debugger.exception_types import ANY, is_by_own_code, raised_as
from replaydbg.debugger.session_results import Raised
from replaydbg.errors import AskFailed, UsageError, clause
from replaydbg.installed import is_standard
from replaydbg.render import bisection_text, texts

OUTPUT_LINES = 20
EVENTS = 10
EXCEPTIONS = 30
MOST_CHANGES = 1000
"""The default number of values that `history` shows."""

_COUNTED = re.compile(r"(.*[\w\]'\")])\s+(\d+)\Z", re.S)
"""An expression, and how many are wanted."""
_LOG = re.compile(r"(?P<place>\S+)\s+(?P<expression>.+)\Z", re.S)
_QUOTED = re.compile(r"""(?P<quote>['"])(?P<inner>.*)(?P=quote)(?:\s+if\s+(?P<condition>.+))?\Z""", re.S)
_QUOTED_TWICE = re.compile(
    r"""(?P<quote>['"])(?P<inner>.*?)(?P=quote)\s+if\s+(?P<other>['"])(?P<condition>.+)(?P=other)\Z""", re.S
)
_PLAIN = re.compile(r"(?P<inner>.+?)(?:\s+if\s+(?P<condition>(?:(?!\belse\b).)+))?\Z", re.S)


def when(view: View, rest: str) -> None:
    """Print where in time this is."""
    here = view.here
    view.screen.line(texts.here_text(view.session, here), "bold")
    lines = f"{here.moment.step:,} line{'s' if here.moment.step != 1 else ''}"
    view.screen.line(f"event {here.moment.event:,} of {view.session.index.events:,}, {lines} after it")
    view.screen.line(f"line {here.count:,} of {here.total:,} of the run")
    seconds = view.session.time_at(here.moment)
    if seconds is not None:
        view.screen.line(f"{seconds:.3f} s after the start, by the latest time stamp before it")
    view.screen.line(f"rdbg://{texts.recording_name(view.session)}@{texts.moment_text(here.moment)}")


def _why(view: View, rest: str) -> None:
    text = expression_in(rest, "why EXPRESSION")
    write = view.session.run.why(text, **view.at)
    lines = texts.why_lines(
        view.session,
        write,
        follow="seek {moment}, then why {name}",
        group=view.group,
        jump=lambda event, end: f"jump-to-sender {event}",
    )
    for line in lines:
        view.screen.line(line)


def _last(view: View, rest: str) -> None:
    write = view.session.run.why(expression_in(rest, "last EXPRESSION"), **view.at)
    if write.moment is None:
        raise UsageError(f"{write.expression} was not written before this moment.")
    changes = [(f"{write.expression}{each.name}", each.before, each.after) for each in write.parts]
    for name, before, after in changes or [(write.expression, write.before, write.after)]:
        view.screen.line(f"{name}: {before or '(not set)'} -> {after or '(deleted)'}")
    go_to(view, write.count)


def _bisect(view: View, rest: str) -> None:
    wanted = parse_search(rest)
    session = view.session
    search = wanted.search(session)
    if wanted.is_all:
        for line in bisection_text.verdict_change_lines(session, wanted.predicate.text, search.verdict_changes()):
            view.screen.line(line)
        if search.note:
            view.screen.line(search.note)
        return
    found = wanted.found(search)
    for line in bisection_text.lines(session, found, "", width=view.screen.columns):
        view.screen.line(line)
    if found.culprit is not None:
        go_to(view, found.culprit.count)


def _holds(view: View, rest: str) -> None:
    wanted = parse_search(expression_in(rest, "holds EXPRESSION"))
    search = wanted.search(view.session)
    found = list(_stretches(view, search))
    if found:
        text, width = wanted.predicate.text, view.screen.columns
        lines = bisection_text.stretch_lines(view.session, text, found, width=width)
    else:
        lines = bisection_text.never_true_lines(wanted.predicate, search.end, search.why_undecided())
    for line in lines:
        view.screen.line(line)


def _stretches(view: View, search: Bisection) -> Iterator[TrueStretch]:
    for number, each in enumerate(true_stretches(search, MOST_CHANGES)):
        if number == MOST_CHANGES:
            view.screen.line(f"Showing the first {MOST_CHANGES:,}. Use --from MOMENT for later ones.", "dim")
            return
        yield each


def _watch(view: View, rest: str) -> None:
    text = rest.strip().removeprefix("-l ").removeprefix("-location ")
    point = view.session.run.watch(expression_in(text, "watch EXPRESSION"), **view.at)
    view.screen.line(f"Breakpoint {point.number}: {point}")


def _history(view: View, rest: str) -> None:
    match = _COUNTED.match(expression_in(rest, "history EXPRESSION [N]"))
    expression, most = (match[1], int(match[2])) if match is not None else (rest.strip(), MOST_CHANGES)
    if most < 1:
        raise UsageError(f"N must be at least 1 (got {most}).")
    found = 0
    history = view.session.run.history(expression, **view.at, most=most + 1)
    for change in history:
        if found == most:
            view.screen.line(f"Showing the first {most:,} changes. Use `history {expression} {10 * most}` for more.")
            return
        view.screen.line(texts.change_text(view.session, change))
        found += 1
    if not found:
        view.screen.line(" ".join(("No changes.", *why_absent(view, expression))))
    if history.note:
        view.screen.line(f"{expression}: {clause(history.note)}.")


def why_absent(view: View, expression: str) -> Iterator[str]:
    """Yield why an expression without changes has no value here; nothing if it has one, or that is not known."""
    try:
        error = view.session.ask.evaluate(expression, **view.at).error
    except AskFailed:
        return
    if error:
        yield f"{expression} has no value here: {clause(str(error))}."


def _log(view: View, rest: str) -> None:
    place, expression, condition = parse_log(rest)
    file, line, _ = parse_place(view, place, is_line=True)
    number = 0
    for logged in view.session.run.log(file, line, expression, condition=condition):
        view.screen.line(texts.logged_text(view.session, logged))
        number += 1
    view.screen.line(f"{number:,} times.", "dim")


def parse_log(text: str) -> tuple[str, str, str]:
    """Return place, expression and condition of `PLACE 'EXPRESSION' [if COND]`. Raises UsageError."""
    match = _LOG.match(text.strip())
    if match is None:
        raise UsageError("usage: log FILE:LINE 'EXPRESSION' [if CONDITION]")
    what = match["expression"].strip()
    found = _QUOTED.match(what) or _PLAIN.match(what)
    assert found is not None, what
    expression, condition = found["inner"].strip(), (found["condition"] or "").strip()
    if "quote" in found.groupdict() and (match_if := _QUOTED_TWICE.match(what)):
        # The condition may be quoted if the expression is.
        expression, condition = match_if["inner"].strip(), match_if["condition"].strip()
    for each in (expression, condition):
        try:
            ast.parse(each, mode="eval") if each else None
        except (SyntaxError, ValueError) as error:
            raise UsageError(f"{each!r} is not valid Python: {error}.") from None
    return match["place"], expression, condition


def _events(view: View, rest: str) -> None:
    number = number_of(rest, default=EVENTS)
    last = view.here.moment.event
    found = texts.events_of(view.session, last - number + 1, last + 1)
    for event in found:
        is_next = event.number == last + 1
        view.screen.line(f"{'next' if is_next else '    '} {texts.event_text(event)}", "dim" if is_next else "")
    if not found:
        view.screen.line("No events.")


def _output(view: View, rest: str) -> None:
    number = 1 << 30 if rest.strip() == "all" else number_of(rest, default=OUTPUT_LINES)
    written = b"".join(each.data for each in view.session.run.output())
    lines = written.decode("utf-8", "replace").splitlines()
    if not lines:
        view.screen.line("No output before this moment.")
    if len(lines) > number:
        view.screen.line(f"({len(lines) - number:,} earlier lines; `output all` shows them)", "dim")
    for line in lines[-number:]:
        view.screen.line(line)


def exceptions(view: View, rest: str) -> None:
    """Print the exception that is being handled, and those that the program raised."""
    handled = view.session.ask.exceptions()
    for number, (kind, text) in enumerate(handled):
        view.screen.line(("being handled: " if not number else "  caused by: ") + f"{kind}: {text}", "red")
    if not handled:
        view.screen.line("No exception is being handled.")
    _print_raised(view, _wanted_exceptions(view, rest))


@dataclass(frozen=True, slots=True)
class WantedExceptions:
    """Which exceptions to list."""

    who: str = ""
    """`own`, `all`, or empty: all but those of the standard library, if there are many."""
    type: str = ANY
    text: str = ""
    """What the line must contain, in any case."""
    most: int = EXCEPTIONS

    def listed(self, view: View) -> ListedExceptions:
        """Return the exceptions of the run that are wanted."""
        # Exceptions before the program's own first line, and during its end, are the interpreter's. Before the end come
        # the handlers that run while the last exception leaves the program.
        session = view.session
        last = max(session.index.end, session.failure.count if session.failure is not None else 0)
        raised = [each for each in raised_as(session, self.type) if session.first_own <= each.count <= last]
        raised = [each for each in raised if each.type not in texts.SILENT]
        if self.who == "own":
            raised = [each for each in raised if is_by_own_code(each, view.own_code)]
        found = [each for each in raised if self.text.lower() in raised_text(view, each).lower()]
        hidden = 0
        if not self.who and not self.text and self.type == ANY and len(found) > self.most:
            shown = [each for each in found if each.is_uncaught or not is_standard(each.file)] or found
            hidden, found = len(found) - len(shown), shown
        return ListedExceptions(tuple(found[-self.most :]), len(found), hidden)


@dataclass(frozen=True, slots=True)
class ListedExceptions:
    """A list of exceptions, in order."""

    shown: tuple[Raised, ...]
    """The last ones."""
    number: int
    """Of those that were found: there may be more than are shown."""
    hidden: int
    """The number of those that the standard library raised, if they are left out."""

    @property
    def hidden_text(self) -> str:
        """The beginning of a sentence about them."""
        return f"{self.hidden:,} that the standard library raised {'is' if self.hidden == 1 else 'are'} not listed"


def _wanted_exceptions(view: View, rest: str) -> WantedExceptions:
    """Return what `[own|all] [TYPE] [TEXT] [N]` selects. Raises UsageError."""
    words = rest.split()
    who = words.pop(0) if words[:1] in (["own"], ["all"]) else ""
    is_number = bool(words) and words[-1].lstrip("-").isdecimal()
    most = number_of(words.pop()) if is_number else EXCEPTIONS
    kind = words.pop(0) if words and view.session.types_named(words[0]) else ANY
    return WantedExceptions(who, kind, " ".join(words), most)


def _print_raised(view: View, wanted: WantedExceptions) -> None:
    found = wanted.listed(view)
    if wanted != WantedExceptions(most=wanted.most) and not found.shown:
        view.screen.line("No such exception was raised in this run.")
    earlier = found.number - len(found.shown)
    if earlier:
        more = " ".join(each for each in (wanted.who, wanted.type.strip(ANY), wanted.text, str(found.number)) if each)
        view.screen.line(f"({earlier:,} earlier ones; `exceptions {more}` shows them)", "dim")
    for each in found.shown:
        view.screen.line(raised_text(view, each))
    if found.hidden:
        ways = "`exceptions all` lists them, `exceptions own` lists those of your code alone"
        view.screen.line(f"({found.hidden_text}; {ways})", "dim")
    if left_out := left_out_text(view):
        view.screen.line(f"{left_out}, and `catch` does not stop at them.", "dim")


def raised_text(view: View, each: Raised) -> str:
    """Return the line of the list about an exception."""
    more = ", which ended the program" if each.is_uncaught else " again" if each.is_again else ""
    moment = texts.moment_text(view.session.index.moment(each.count))
    place = f"  {texts.place_text(view.session, each.file, each.line, each.function)}" if each.file else ""
    return f"{moment:>8}  thread {each.lane}  raised {each.text}{more}{place}"


def left_out_text(view: View) -> str:
    """Return a sentence, without its end, about the exceptions that were too many to keep; empty: there are none."""
    left_out = view.session.index.left_out
    if left_out is None:
        return ""
    first, last = (texts.moment_text(view.session.index.moment(count)) for count in (left_out.first, left_out.last))
    return f"Too many exceptions to keep all: {left_out.number:,} between {first} and {last} are not listed"


def tasks(view: View, rest: str) -> None:
    """Print the asyncio tasks that are not done: below each those that it awaits."""
    found = view.session.ask.tasks()
    if not found:
        view.screen.line("No asyncio tasks.")
    for each in task_tree(found):
        indent = "  " * each.depth
        view.screen.line(f"{indent}{each.task.name}  {'(see above)' if each.is_again else each.state}", "bold")
        for file, line, function in () if each.is_again else each.task.frames:
            view.screen.line(f"{indent}    {texts.place_text(view.session, file, line, function)}")


def threads(view: View, rest: str) -> None:
    """Print the threads with what each waits for, and the asyncio tasks with where each of them is."""
    lanes(view, rest)
    for each in task_tree(view.session.ask.tasks()):
        if not each.is_again:
            indent = "  " * each.depth
            place = texts.place_text(view.session, *each.task.frames[-1]) if each.task.frames else ""
            view.screen.line(f"   {indent}task {each.task.name}  {each.state}  {place}".rstrip())


def lanes(view: View, rest: str) -> None:
    """Print the lanes, the program's threads, with what each waits for."""
    looked_at = view.here.lane if view.lane is None else view.lane
    for lane in view.here.lanes:
        mark = "->" if lane.id == looked_at else "  "
        state = "runs" if lane.id == view.here.lane else f"waits for {lane.waits_for}" if lane.waits_for else "runnable"
        top = lane.top
        place = texts.place_text(view.session, top.file, top.line, top.function) if top is not None else ""
        view.screen.line(f"{mark} thread {lane.id}  {lane.name or '(no name)'}  {state}  {place}".rstrip())


def _thread(view: View, rest: str) -> None:
    word = rest.strip().removeprefix("thread ").strip()
    if not word:
        lanes(view, "")
        return
    known = {each.id: each for each in view.here.lanes}
    named = next((each.id for each in view.here.lanes if each.name == word), None)
    number = int(word) if word.isdecimal() else named
    if number not in known or number is None:
        raise UsageError(f"No such thread: {word!r}. Threads here: {', '.join(map(str, known))}.")
    view.lane = None if number == view.here.lane else number
    view.frame, view.listed = 0, 0
    lanes(view, "")
    if view.frames():
        at = view.place()
        view.show_source(at.file, at.line, at.line, at.line)


COMMANDS = (
    PromptCommand(("when", "when-ticks"), "", "show the current moment", when, completes=""),
    PromptCommand(("why",), "EXPR", "find the last write of a value, even of an equal one, and its events", _why),
    PromptCommand(("last",), "EXPR", "go to the last write of this value", _last),
    PromptCommand(
        ("bisect",),
        "EXPR [--linear ...]",
        "go to the line after which EXPR was first true",
        _bisect,
        completes="search",
    ),
    PromptCommand(
        ("holds",), "EXPR [--frame ...]", "show when EXPR was true, over the whole run", _holds, completes="search"
    ),
    PromptCommand(("watch",), "EXPR", "stop where a value changes, in both directions", _watch),
    PromptCommand(
        ("history",), "EXPR [N]", "list the first N values of EXPR (writes of an equal value are not listed)", _history
    ),
    PromptCommand(
        ("log", "dprintf"),
        "FILE:LINE 'EXPR' [if COND]",
        "print EXPR each time a line ran, over the whole run",
        _log,
        completes="logged",
    ),
    PromptCommand(("events",), "[N]", "list the program's last inputs and other events", _events, completes=""),
    PromptCommand(("output",), "[N | all]", "show what the program has written so far", _output, completes=""),
    PromptCommand(
        ("exceptions",),
        "[own|all] [TYPE] [TEXT] [N]",
        "list the exceptions being handled, and those raised",
        exceptions,
        completes="exceptions",
    ),
    PromptCommand(
        ("threads",), "", "list the threads and asyncio tasks, and what each waits for", threads, completes=""
    ),
    PromptCommand(("thread",), "[N]", "select another thread", _thread, completes="lanes"),
    PromptCommand(("tasks",), "", "show which asyncio tasks await which, and where they are", tasks, completes=""),
)
