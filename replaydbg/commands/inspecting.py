"""Commands that inspect one moment: stack, source, values."""

from __future__ import annotations

import ast
import inspect
import pprint
from collections.abc import Iterable

from replaydbg.commands.motion import number_of, set_direction
from replaydbg.commands.view import View
from replaydbg.commands.vocabulary import PromptCommand, expression_in
from replaydbg.debugger.session_results import Variable
from replaydbg.errors import AskFailed, UsageError
from replaydbg.render import texts

FRAMES = 40
"""The default number of frames that `where` shows."""

PAGE = 11
"""Lines that `list` shows."""


# ---- frames ----


def where(view: View, rest: str) -> None:
    """Print the stack, innermost frame first."""
    most = number_of(rest, default=FRAMES)
    frames = view.frames()
    if not frames:
        raise UsageError("No Python code runs in this thread here.")
    for number, frame in enumerate(frames[:most]):
        mark = "->" if number == view.frame else "  "
        place = texts.place_text(view.session, frame.file, frame.line, frame.function)
        view.screen.line(f"{mark} #{number:<3} {place}", "bold" if number == view.frame else "")
        source = view.session.source_line(frame.file, frame.line)
        if source:
            view.screen.line(f"           {source}")
    if len(frames) > most:
        view.screen.line(f"and {len(frames) - most:,} more; `where {len(frames)}` shows them all")


def _up(view: View, rest: str) -> None:
    _select(view, view.frame + number_of(rest))


def _down(view: View, rest: str) -> None:
    _select(view, view.frame - number_of(rest))


def frame(view: View, rest: str) -> None:
    """Select a frame by its number, or show the selected one."""
    word = rest.strip()
    if word and not word.isdecimal():
        raise UsageError(f"No such frame: {word!r}. See `where`.")
    _select(view, int(word) if word else view.frame)


def _select(view: View, number: int) -> None:
    frames = view.frames()
    if number < 0:
        raise UsageError("Already in the innermost frame.")
    if number >= len(frames):
        frames_here = "is 1 frame" if len(frames) == 1 else f"are {len(frames):,} frames"
        raise UsageError(f"No frame #{number}: there {frames_here}.")
    view.frame, view.listed = number, 0
    at = frames[number]
    view.show_frame()
    view.show_source(at.file, at.line, at.line, at.line)


# ---- source ----


def list_source(view: View, rest: str) -> None:
    """Print source lines: around the current one, and again what follows; `.`, N, or A,B."""
    at = view.place()
    word = rest.strip()
    first, last = _range(view, word, at.line)
    shown = view.show_source(at.file, first, last, at.line)
    if not shown:
        have = len(view.session.sources.lines(at.file))
        view.listed = 0
        raise UsageError(f"{at.file} has {have:,} lines." if have else f"The source of {at.file} is not available.")
    view.listed = shown


def _range(view: View, word: str, current: int) -> tuple[int, int]:
    if word == "-":
        last = max((view.listed or current) - PAGE, 1)
        return last - PAGE + 1, last
    if word in (".", ""):
        start = view.listed + 1 if view.listed and not word else current - PAGE // 2
        return start, start + PAGE - 1
    first, comma, second = (each.strip() for each in word.partition(","))
    if not first.isdecimal() or (comma and not second.isdecimal()):
        raise UsageError(f"usage: list [N | A,B | . | -] (got {word!r})")
    if not comma:
        return int(first) - PAGE // 2, int(first) + PAGE // 2
    # As in pdb, a second number below the first is how many.
    return int(first), int(second) if int(second) >= int(first) else int(first) + int(second)


def _longlist(view: View, rest: str) -> None:
    at = view.place()
    lines = view.session.sources.lines(at.file)
    first, last = _function(lines, at.line, at.function)
    if not view.show_source(at.file, first, last, at.line):
        raise UsageError(f"The source of {at.file} is not available.")
    view.listed = last


def _function(lines: tuple[str, ...], line: int, name: str) -> tuple[int, int]:
    """The lines of the innermost function or class of that name around a line; else all."""
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError):
        return 1, len(lines)
    short = name.rpartition(".")[2]
    found = (1, len(lines))
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or node.name != short:
            continue
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        if first <= line <= (node.end_lineno or first):
            found = (first, node.end_lineno or first)
    return found


def source(view: View, rest: str) -> None:
    """Print the source of a function, class or module that an expression names."""
    name = expression_in(rest, "source NAME")
    asked = (
        f"(lambda o: (o.co_filename, o.co_firstlineno) if hasattr(o, 'co_filename') else "
        f"(getattr(__import__('sys').modules.get(getattr(o, '__module__', None), o), '__file__', None), "
        f"getattr(o, '__qualname__', '')))"
        f"((lambda o: getattr(getattr(o, '__func__', o), '__code__', o))"
        f"((lambda u, o: u(o, u))(lambda o, u: u(o.__wrapped__, u) if hasattr(o, '__wrapped__') else o, {name})))"
    )
    result = view.evaluate(asked)
    if result.error is not None or result.value is None:
        raise UsageError(f"{name}: {result.error}.")
    file, key = ast.literal_eval(result.value.text)
    lines = view.session.sources.lines(file) if isinstance(file, str) else ()
    if not lines:
        raise UsageError(f"The source of {name} is not available.")
    first = key if isinstance(key, int) else _class_line(lines, key)
    block = inspect.getblock([f"{each}\n" for each in lines[first - 1 :]]) if key else lines
    view.screen.line(file, "bold")
    view.show_source(file, first, first + len(block) - 1)


def _class_line(lines: tuple[str, ...], qualified: str) -> int:
    name = qualified.rpartition(".")[2]
    return next(
        (at for at, line in enumerate(lines, 1) if line.split("(")[0].split(":")[0].split() == ["class", name]), 1
    )


# ---- values ----


def print_value(view: View, rest: str) -> None:
    """Evaluate an expression in a throw-away copy, and print its value."""
    show_evaluation(view, expression_in(rest, "print EXPRESSION"))


def show_evaluation(view: View, text: str) -> None:
    """Run an expression or statements in a throw-away copy; print what they print, and the value."""
    result = view.evaluate(text)
    if result.output:
        view.screen.line(result.output.removesuffix("\n"))
    if result.error is not None:
        raise AskFailed(f"it raised {result.error}")
    if result.value is not None and result.value.type != "NoneType":
        view.screen.line(result.value.text)


def _pretty(view: View, rest: str) -> None:
    text = expression_in(rest, "pp EXPRESSION")
    result = view.evaluate(f"print(repr({text}))")
    if result.error is not None:
        raise AskFailed(f"it raised {result.error}")
    try:
        view.screen.line(pprint.pformat(ast.literal_eval(result.output.strip()), width=100, sort_dicts=False))
        return
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        view.screen.line(result.output.removesuffix("\n"))
    for part in view.session.ask.parts(text, **view.at):
        view.screen.line(f"  {texts.variable_text(part)}")


def _whatis(view: View, rest: str) -> None:
    result = view.evaluate(expression_in(rest, "whatis EXPRESSION"))
    if result.value is None:
        raise AskFailed(f"it raised {result.error}" if result.error else "a statement has no type")
    more = f", {result.value.parts:,} parts" if result.value.parts else ""
    view.screen.line(f"{result.value.type}{more}")


def arguments(view: View, rest: str) -> None:
    """Print the arguments of the selected frame's function."""
    found = view.session.ask.arguments(**view.at)
    if not found:
        view.screen.line("No arguments.")
    for each in found:
        view.screen.line(texts.variable_text(each))


def local_variables(view: View, rest: str) -> None:
    """Print the selected frame's local variables."""
    _print_variables(view, of_module=False)


def global_variables(view: View, rest: str) -> None:
    """Print the variables of the selected frame's module."""
    _print_variables(view, of_module=True)


def _print_variables(view: View, *, of_module: bool) -> None:
    print_variables(view, view.session.ask.variables(**view.at, of_module=of_module))


def print_variables(view: View, found: Iterable[Variable]) -> None:
    """Print variables, without those that Python itself defines."""
    shown = [each for each in found if not (each.name.startswith("__") and each.name.endswith("__"))]
    if not shown:
        view.screen.line("No variables.")
    for each in shown:
        view.screen.line(texts.variable_text(each))


def _display(view: View, rest: str) -> None:
    text = rest.strip()
    if text:
        view.evaluate(text)  # what cannot be asked at all is refused now
        view.display_number += 1
        view.displays[view.display_number] = text
    elif not view.displays:
        view.screen.line("Nothing is displayed; `display EXPRESSION` shows it wherever you stop.")
    view.show_displays()


def _undisplay(view: View, rest: str) -> None:
    word = rest.strip()
    if not word:
        view.displays.clear()
        return
    numbers = [number for number, text in view.displays.items() if word in (str(number), text)]
    if not numbers:
        raise UsageError(f"{word!r} is not displayed.")
    for number in numbers:
        del view.displays[number]


def _set(view: View, rest: str) -> None:
    word, _, more = rest.strip().partition(" ")
    if word in ("exec-direction", "exec-dir"):
        set_direction(view, more)
        return
    statement = more.strip() if word in ("var", "variable") else rest.strip()
    if "=" not in statement:
        raise UsageError("usage: set var NAME = VALUE, or set exec-direction reverse|forward")
    compile_statement(statement)
    view.session.change(statement, **view.at)
    view.screen.line("Changed. From here forward, the run differs from the recording;")
    view.screen.line("any seek or step back returns to the recorded run.")


def compile_statement(text: str) -> None:
    """Raise UsageError for a text that is not Python."""
    try:
        compile(text, "<statement>", "exec")
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{text!r} is not valid Python: {error}.") from None


COMMANDS = (
    PromptCommand(
        ("where", "w", "bt", "backtrace"), "[N]", "show the stack, innermost frame first", where, completes=""
    ),
    PromptCommand(("up", "u"), "[N]", "select the frame that called this one", _up, repeats=True, completes=""),
    PromptCommand(("down", "d"), "[N]", "select the frame that this one called", _down, repeats=True, completes=""),
    PromptCommand(("frame", "f"), "[N]", "select a frame by its number", frame, completes=""),
    PromptCommand(
        ("list", "l"),
        "[N | A,B | . | -]",
        "show source lines with how often each ran",
        list_source,
        repeats=True,
        completes="",
    ),
    PromptCommand(("longlist", "ll"), "", "show the whole function", _longlist, completes=""),
    PromptCommand(("source",), "NAME", "show the source of a function or class", source),
    PromptCommand(
        ("print", "p", "inspect", "call"),
        "EXPR",
        "evaluate an expression in a throw-away copy and print its value",
        print_value,
    ),
    PromptCommand(("pp",), "EXPR", "pretty-print a value", _pretty),
    PromptCommand(("whatis", "ptype"), "EXPR", "show the type of a value", _whatis),
    PromptCommand(("args", "a"), "", "show the arguments of this function", arguments, completes=""),
    PromptCommand(("locals",), "", "show the local variables", local_variables, completes=""),
    PromptCommand(("display",), "[EXPR]", "show a value at each stop (default: show all now)", _display),
    PromptCommand(("undisplay",), "[N]", "stop showing a value (default: all)", _undisplay, completes=""),
    PromptCommand(
        ("set",),
        "var NAME = VALUE | exec-direction WAY",
        "change a variable of the program, or the direction of commands",
        _set,
        completes="settings",
    ),
)
