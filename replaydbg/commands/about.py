"""`info` with its subjects, and replies to commands of other debuggers that this one lacks."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from replaydbg.commands import inspecting, motion, points, processes, whole_run
from replaydbg.commands.view import View
from replaydbg.commands.vocabulary import PromptCommand
from replaydbg.debugger.session import PATH_DIFFERS
from replaydbg.errors import UsageError
from replaydbg.events.nearest_words import nearest
from replaydbg.render import texts


def _line(view: View, rest: str) -> None:
    at = view.place()
    hits = view.session.index.lines_hit(at.file).get(at.line, 0)
    view.screen.line(f"{at.file}:{at.line} in {at.function}; it ran {hits:,} times in the whole run")


def _frame(view: View, rest: str) -> None:
    inspecting.frame(view, "")
    inspecting.arguments(view, "")


def _source(view: View, rest: str) -> None:
    at = view.place()
    lines = view.session.sources.lines(at.file)
    view.screen.line(f"{at.file}, {len(lines):,} lines" if lines else f"{at.file}: source not available")


def _files(view: View, rest: str) -> None:
    pattern = rest.strip()
    found: dict[str, int] = {}
    for each in view.session.index.hits:
        found[each.file] = found.get(each.file, 0) + sum(each.lines.values())
    for file, lines in sorted(found.items(), key=lambda item: -item[1]):
        if pattern in file:
            view.screen.line(f"{lines:>12,}  {file}")


def _functions(view: View, rest: str) -> None:
    pattern = rest.strip()
    for each in sorted(view.session.index.hits, key=lambda each: (each.file, each.first_line)):
        if pattern in each.function:
            view.screen.line(texts.place_text(view.session, each.file, each.first_line, each.function))


def _recording(view: View, rest: str) -> None:
    header = view.session.header
    view.screen.line(f"{view.session.path}: {shlex.join(header.command)}")
    view.screen.line(f"Python {header.python.version}, {header.created}")
    index = view.session.index
    view.screen.line(f"{index.events:,} events, {index.total:,} lines; {index.ended}")
    checkpoints = len(view.session.checkpoints())
    view.screen.line(f"{checkpoints:,} checkpoints. {view.session.limitations.text}".rstrip())
    if not view.session.is_repeated:
        view.screen.line(PATH_DIFFERS, "red")


def _displays(view: View, rest: str) -> None:
    if not view.displays:
        view.screen.line("Nothing is displayed.")
    for number, text in view.displays.items():
        view.screen.line(f"{number}: {text}")


SUBJECTS: dict[str, tuple[Callable[[View, str], None], str]] = {
    "args": (inspecting.arguments, "the arguments of this function"),
    "breakpoints": (points.breakpoints, "the breakpoints and watched values"),
    "checkpoints": (motion.marks, "the marks and checkpoints"),
    "display": (_displays, "expressions shown at each stop"),
    "exceptions": (whole_run.exceptions, "exceptions being handled, and those raised before"),
    "files": (_files, "files with the number of lines executed in each"),
    "frame": (_frame, "the selected frame"),
    "functions": (_functions, "functions that ran"),
    "globals": (inspecting.global_variables, "the variables of the module"),
    "line": (_line, "the current line"),
    "locals": (inspecting.local_variables, "the local variables"),
    "marks": (motion.marks, "the marks and checkpoints"),
    "recording": (_recording, "the open recording"),
    "processes": (processes.show_processes, "the processes that were recorded together"),
    "inferiors": (processes.show_processes, "the processes that were recorded together"),
    "program": (_recording, "the open recording"),
    "source": (_source, "the current source file"),
    "stack": (inspecting.where, "the stack"),
    "tasks": (whole_run.tasks, "asyncio tasks"),
    "threads": (whole_run.threads, "the threads and asyncio tasks"),
    "watchpoints": (points.breakpoints, "the breakpoints and watched values"),
}
"""The subjects of `info`, each with one line of help."""

SHORT = {"b": "breakpoints", "f": "frame", "s": "stack", "l": "locals"}


def _info(view: View, rest: str) -> None:
    word, _, more = rest.strip().partition(" ")
    if not word:
        for name, (_, text) in SUBJECTS.items():
            view.screen.line(f"info {name:<12} {text}")
        return
    word = SHORT.get(word, word)
    found = {SUBJECTS[name][0]: name for name in SUBJECTS if name == word or name.startswith(word)}
    if word not in SUBJECTS and len(found) != 1:
        what = f"is ambiguous: {', '.join(sorted(found.values()))}" if found else f"is unknown{nearest(word, SUBJECTS)}"
        raise UsageError(f"info {word!r} {what}. `info` lists the subjects.")
    (SUBJECTS[word][0] if word in SUBJECTS else next(iter(found)))(view, more)


COMMANDS = (
    PromptCommand(("info", "i"), "[SUBJECT]", "show locals, breakpoints, threads ...", _info, completes="subjects"),
)

_PAST = "Execution history is fixed; use `seek`, `advance` or `until` to move through it."

REFUSED = {
    "j": _PAST,
    "jump": _PAST,
    "interact": "No nested interpreter: type expressions here; each runs in a throw-away copy of the program.",
    "kill": "There is no process to kill: this is a recording. `quit` leaves the debugger.",
    "attach": "This is a recording, not a process. `replaydbg debug REC` opens another one.",
    "stepi": "The smallest step is a line of Python: use `step`.",
    "si": "The smallest step is a line of Python: use `step`.",
    "nexti": "The smallest step is a line of Python: use `next`.",
    "ni": "The smallest step is a line of Python: use `next`.",
    "alias": "No aliases; commands can be abbreviated to any unique prefix.",
    "debug": "No nested debugger: use `step` to enter calls.",
    "retval": "Use `finish`, then `why NAME`, to see what a function returned.",
}
"""Commands of other debuggers that this one lacks, each with a reply."""
