"""The prompt: reads lines, runs them as commands or Python, and survives their errors."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from replaydbg.commands import (
    about,
    called_functions,
    heap_commands,
    inspecting,
    landmarks,
    messages,
    module_browser,
    motion,
    points,
    processes,
    resources,
    whole_run,
)
from replaydbg.commands.surface import Interruptible, Surface
from replaydbg.commands.view import View
from replaydbg.commands.vocabulary import PromptCommand, Vocabulary
from replaydbg.debugger import Session
from replaydbg.errors import ForgedMessage, ReplaydbgError, UsageError

_WORD = re.compile(r"([A-Za-z_][\w-]*|\?)(.*)\Z", re.S)
_IS_PYTHON = re.compile(r"[.(\[]|\s*(?:=(?!=)|==|!=|[*/%<>&|^]|\*\*)|\s+(?:and|or|is|in|not in)\s")
"""The text after the first word of a line of Python that happens to begin with a command's name."""

_IS_PATH = re.compile(r"\s+(?:/\S*|<[^<>]*>):\w")
"""The text after it that looks like a division or a comparison but is a file (or generated code) and a line."""

_IS_MOMENT = re.compile(r"@\S+\Z|rdbg://\S+\Z|\d+:\d+\Z|\d+(?:\.\d+)?%\Z")
"""A moment that is not Python: the prompt goes there."""

_NOT_DEFINED = re.compile(r"NameError: name '(\w+)' is not defined")


class Prompt:
    """Runs lines of commands on a session and prints the answers. Never raises for the content of a line."""

    def __init__(
        self, session: Session, screen: Surface, interrupts: Interruptible, *, view: View | None = None
    ) -> None:
        """`interrupts` handles Ctrl-C while a line runs. `view`: one that shows less."""
        self.view = view if view is not None else View(session, screen)
        self._interrupts = interrupts
        self._last = ""
        self.has_failed = False
        """Whether the last line could not be done."""
        help_ = PromptCommand(
            ("help", "h", "?"), "[COMMAND]", "list the commands, or describe one", self._help, completes="commands"
        )
        groups = {
            "Moving": (*motion.COMMANDS, *landmarks.COMMANDS),
            "Breakpoints": points.COMMANDS,
            "Inspecting": (*inspecting.COMMANDS, *module_browser.COMMANDS, *resources.COMMANDS),
            "The whole run": (*whole_run.COMMANDS, *called_functions.COMMANDS),
            "Processes": (*processes.COMMANDS, *messages.COMMANDS),
            "Memory": heap_commands.COMMANDS,
            "More": (*about.COMMANDS, help_),
        }
        self._groups = groups
        self.vocabulary = Vocabulary((each for group in groups.values() for each in group), about.REFUSED)

    def open(self) -> None:
        """Show the current position."""
        with self.busy():
            if self.view.session.limitations.text:
                self.view.screen.line(self.view.session.limitations.text)
            self.view.arrive()

    def busy(self) -> AbstractContextManager[None]:
        """While something runs: a Ctrl-C gives it up."""
        return self._interrupts.busy(self.view.session)

    @property
    def is_over(self) -> bool:
        """Whether `quit` was entered."""
        return self.view.is_over

    def interact(self, read: Callable[[], str]) -> None:
        """Do the lines that `read` gives until it raises EOFError. At a KeyboardInterrupt of it a new line begins."""
        while not self.is_over:
            try:
                line = read()
            except EOFError:
                return
            except KeyboardInterrupt:
                self.view.screen.line()
                continue
            self.do(line)

    def run(self, lines: Iterable[str]) -> None:
        """Do `lines`; an empty one does nothing."""
        for line in lines:
            if self.is_over:
                return
            if line.strip():
                self.do(line)

    def do(self, line: str) -> bool:
        """Run one line; return False if it failed, which has been reported. Raises ForgedMessage."""
        self.has_failed = True
        screen = self.view.screen
        try:
            with self.busy():
                self.carry_out(line.strip())
            self.has_failed = False
        except EOFError:
            self.has_failed = False
        except ForgedMessage:
            raise  # nothing is left of that session
        except (ReplaydbgError, RecursionError, MemoryError) as error:
            screen.complain(str(error) or type(error).__name__)
        finally:
            for notice in self.view.group.take_notices():
                screen.line(notice, "red")
            screen.settle()
        return not self.has_failed

    def carry_out(self, line: str) -> None:
        """Run one line, then the commands of the breakpoint where it stops; they end when one of them moves, as in gdb.

        Raises ReplaydbgError for what cannot be done, and EOFError for what ends the prompt.
        """
        view = self.view
        if view.commanded:
            points.add_command(view, line)
            return
        view.stopped_by = 0
        self._do(line)
        again, todo = self._last, iter(list[str]())
        while True:
            if view.stopped_by:
                todo = iter(view.commands.get(view.stopped_by, ()))
                view.stopped_by = 0
            each = next(todo, None)
            if each is None:
                break
            self._do(each)
            view.screen.check()
        self._last = again

    def _do(self, line: str) -> None:
        if line.startswith("#"):
            return
        if not line:
            line = self._last
            if not line:
                return
        self._last = ""
        if _IS_MOMENT.match(line):
            line = f"seek {line}"
        if line.startswith("!"):
            self._evaluate(line[1:].strip())
            return
        command, rest = self.split(line)
        if command is None:
            match = _WORD.match(line)
            self._expression(line, match[1] if match is not None else line.split()[0])
            return
        word = line[: len(line) - len(rest)]
        if rest[:1] == "/":
            raise UsageError(
                f"{word} takes no format (got {rest.split()[0]!r}). Use Python's hex(), bin() or format()."
            )
        if command.repeats:
            # a repeated `list A,B` continues after it.
            self._last = word if command.run is inspecting.list_source else line
        command.run(self.view, rest)

    def split(self, line: str) -> tuple[PromptCommand | None, str]:
        """Return the command that a line begins with, and what follows its name. No command: the line is Python.

        Raises UsageError for a name that is refused, and for a beginning that several have.
        """
        match = _WORD.match(line)
        if match is None or (_IS_PYTHON.match(match[2]) and not _IS_PATH.match(match[2])):
            return None, line
        return self.vocabulary.find(match[1]), match[2]

    def _expression(self, line: str, word: str) -> None:
        try:
            ast.parse(line)
        except (SyntaxError, ValueError):
            if word.isidentifier() and word not in self.vocabulary.names:
                raise self.vocabulary.unknown(word) from None
            inspecting.compile_statement(line)
        result = self.view.evaluate(line) if line == word else None
        missing = _NOT_DEFINED.match(result.error) if result is not None and result.error else None
        if missing is not None and missing[1] == line:
            raise self.vocabulary.unknown(word)
        self._evaluate(line)

    def _evaluate(self, text: str) -> None:
        if not text:
            raise UsageError("usage: ! STATEMENT")
        inspecting.compile_statement(text)
        inspecting.show_evaluation(self.view, text)
        if any(isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) for node in ast.parse(text).body):
            self.view.screen.line(f"(evaluated in a throw-away copy; `set var {text}` changes the run)", "dim")

    def _help(self, view: View, rest: str) -> None:
        word = rest.strip()
        if not word:
            self._help_on_all()
            return
        command = self.vocabulary.find(word)
        if command is None:
            raise self.vocabulary.unknown(word)
        view.screen.line(f"{command.names[0]} {command.usage}".rstrip(), "bold")
        view.screen.line(f"  {command.help}")
        if len(command.names) > 1:
            view.screen.line(f"  also: {', '.join(command.names[1:])}")
        if command.repeats:
            view.screen.line("  an empty line repeats it")

    def _help_on_all(self) -> None:
        screen = self.view.screen
        for title, group in self._groups.items():
            screen.line(title, "bold")
            for each in group:
                names = ", ".join(each.names[:4])
                screen.line(f"  {f'{names} {each.usage}'.rstrip():<48} {each.help}")
        screen.line("Anything else is evaluated as Python in a throw-away copy of the program (as is `! STATEMENT`).")
        screen.line(
            "Moments: 120 (event), 120:35 (event and lines after it), 71%, @start, @end, @exc, @out:17, @t+1.2s, @NAME."
        )
