"""Lines that are typed at the prompt: readline's editing, completion and history, where Python has readline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from replaydbg.commands import Prompt
from replaydbg.commands.completion.completer import Completion, complete
from replaydbg.prompt.terminal import Interrupts

PROMPT = "(replaydbg) "
REMEMBERED = 2000
"""Lines of the history that are kept from one session to the next."""

DELIMITERS = " \t()[]{},.;:=+*/%&|^~<>!"
"""The characters at which readline begins a word, which it then lists without what comes before. Quotes are not among
them: readline would insert a closing one by itself."""


class LineReader:
    """Reads lines from a terminal."""

    def __init__(self, prompt: Prompt, history: Path | None, interrupts: Interrupts) -> None:
        """Read lines for `prompt`; `history` is the file that keeps them from one session to the next."""
        interrupts.shield(LineReader._complete)
        self._prompt = prompt
        self._history = history
        self._found: list[str] = []
        self._readline = _readline()
        if self._readline is not None:
            self._readline.set_completer(self._complete)
            self._readline.set_completer_delims(DELIMITERS)
            self._readline.parse_and_bind("tab: complete")
            self._readline.set_auto_history(True)
            self._load(self._readline)

    def read(self) -> str:
        """Return the next line. Raises EOFError, KeyboardInterrupt."""
        try:
            return input(self._prompt_text())
        except EOFError:
            # The shell's next prompt must begin on a new line.
            self._prompt.view.screen.line()
            raise

    def _prompt_text(self) -> str:
        view = self._prompt.view
        if view.commanded:
            return "> "
        # Of several processes, the one that is shown.
        return f"(replaydbg {view.process}) " if len(view.group.sessions) > 1 else PROMPT

    def save(self) -> None:
        """Save the history, if it can be written."""
        if self._history is None or self._readline is None:
            return
        try:
            self._history.parent.mkdir(parents=True, exist_ok=True)
            self._readline.set_history_length(REMEMBERED)
            self._readline.write_history_file(self._history)
        except OSError:
            return

    def _load(self, readline: ModuleType) -> None:
        try:
            if self._history is not None:
                readline.read_history_file(self._history)
        except OSError:
            return  # there is none yet

    def _complete(self, text: str, state: int) -> str | None:
        if state == 0 and self._readline is not None:
            line, begin = self._readline.get_line_buffer(), self._readline.get_begidx()
            with self._prompt.busy():
                found = complete(self._prompt, line, self._readline.get_endidx())
            # A Ctrl-C meanwhile was meant for it, not for the line that is typed.
            self._prompt.view.screen.settle()
            self._found = list(for_readline(found, line, begin))
        return self._found[state] if state < len(self._found) else None


def _readline() -> ModuleType | None:
    """Return the module; None: this Python was built without it, and lines are read without editing."""
    try:
        import readline
    except ImportError:
        return None
    return readline


def for_readline(completion: Completion, line: str, begin: int) -> Iterator[str]:
    """Yield what readline may put in the place of what begins at `begin`, where its own word begins."""
    start = completion.start
    for word in completion.words:
        yield line[begin:start] + word if begin <= start else word[begin - start :]
