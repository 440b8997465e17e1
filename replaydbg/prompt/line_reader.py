"""Lines that are typed at the prompt: readline's editing, completion and history, where Python has readline."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from replaydbg.debugger.frame_queries import At
from replaydbg.errors import ReplaydbgError

if TYPE_CHECKING:
    from replaydbg.commands.prompt import Prompt

PROMPT = "(replaydbg) "
REMEMBERED = 2000
"""Lines of the history that are kept from one session to the next."""


class LineReader:
    """Reads lines from a terminal."""

    def __init__(self, prompt: Prompt, history: Path | None) -> None:
        """Read lines for `prompt`; `history` is the file that keeps them from one session to the next."""
        self._prompt = prompt
        self._history = history
        self._found: list[str] = []
        self._readline = _readline()
        if self._readline is not None:
            self._readline.set_completer(self._complete)
            self._readline.set_completer_delims(" \t")
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
            before = self._readline.get_line_buffer()[: self._readline.get_begidx()]
            self._found = completions(self._prompt, before, text)
        return self._found[state] if state < len(self._found) else None


def _readline() -> ModuleType | None:
    """Return the module; None: this Python was built without it, and lines are read without editing."""
    try:
        import readline
    except ImportError:
        return None
    return readline


def completions(prompt: Prompt, before: str, text: str) -> list[str]:
    """Return the completions of `text`, where `before` precedes it in the line."""
    word = before.split()[0] if before.split() else ""
    try:
        if not word:
            return [name for name in prompt.vocabulary.names if name.startswith(text)] or _of_values(prompt, text)
        command = prompt.vocabulary.find(word)
        kind = command.completes if command is not None else "locals"
        if kind == "locals":
            return _of_values(prompt, text)
        return sorted(each for each in _words(prompt, kind) if each.startswith(text))
    except ReplaydbgError:
        return []  # no completions while the program cannot be queried


def _words(prompt: Prompt, kind: str) -> set[str]:
    session = prompt.view.session
    marks = {f"@{name}" for name in session.marks.moments}
    if kind == "moments":
        return marks | {"@start", "@end", "@last", "@exc", "@out:", "@t+"}
    if kind == "places":
        files = {f"{Path(each.file).name}:" for each in session.index.hits if not each.file.startswith("<")}
        return files | {each.function for each in session.index.hits if "<" not in each.function}
    if kind == "exceptions":
        lineages = {each.lineage for each in session.index.raised}
        return {full.rpartition(".")[2] for each in lineages for full in each} - {"object"}
    if kind == "processes":
        is_group = prompt.view.group.directory is not None
        return {str(each.number) for each in prompt.view.group.group.processes if each.recording} if is_group else set()
    if kind == "lanes":
        return {str(each.id) for each in prompt.view.here.lanes}
    if kind == "subjects":
        from replaydbg.commands.about import SUBJECTS  # imported here: it imports every module of the prompt

        return set(SUBJECTS)
    return {"commands": set(prompt.vocabulary.names), "marks": {each[1:] for each in marks}}.get(kind, set())


def _of_values(prompt: Prompt, text: str) -> list[str]:
    """Return names of variables; after a dot, attributes."""
    view = prompt.view
    owner, dot, begun = text.rpartition(".")
    if dot:
        parts = view.session.ask.parts(owner, **view.at)
        return sorted(f"{owner}{each.name}" for each in parts if each.name.startswith(f".{begun}"))
    names = view.session.ask.names(At(**view.at))
    return sorted(each for each in names if each.startswith(text) and (text or not each.startswith("__")))
