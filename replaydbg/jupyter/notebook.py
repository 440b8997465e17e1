"""An extension of IPython in a recorded kernel: a mark before and after each cell, and the magic `%replaydbg`.

kernel_start.py runs this file in the environment of the kernel, which need not have replaydbg: it imports none of it.
"""

from __future__ import annotations

import os
import re
import selectors
import shlex
import shutil
import subprocess
import sys
import time
from typing import Any

TOOL: str = globals().get("TOOL", sys.executable)
"""The Python that runs replaydbg: kernel_start.py knows it."""

QUIET = ("why", "watch", "log", "holds", "seek", "resources", "diff", "heap")
"""The commands that a cell can ask, and that show their progress unless they are told not to."""
QUESTIONS = (*QUIET, "hits", "info", "events")
"""All that a cell can ask."""
ENVIRONMENT = ("-u", "LD_PRELOAD", "-u", "REPLAYDBG_GROUP", "-u", "FORCE_COLOR", "COLUMNS=100")
"""How the environment of a question differs from the kernel's."""
SECONDS = 120.0
"""After this time, a question is given up."""
MOST_BYTES = 50_000
"""Longer answers are cut off."""
USAGE = (
    "usage: %replaydbg QUESTION, such as `%replaydbg why total`, `%replaydbg watch total`, "
    "`%replaydbg log cell 3:2 total` or `%replaydbg seek cell 3`\n"
    f"QUESTION is one of: {', '.join(QUESTIONS)}"
)

_CELL = re.compile(r"\bcell (\d+)(?::(\d+))?(?= |$)")


def load_ipython_extension(shell: Any) -> None:
    """Register the hooks and the magic."""
    cells = Cells(shell)
    shell.events.register("pre_run_cell", cells.begin)
    shell.events.register("post_run_cell", cells.end)
    shell.register_magic_function(cells.ask, "line", "replaydbg")


def note(kind: str, text: str) -> str:
    """Note a text at this moment of the recording, as `replaydbg.moment` does; return the moment, "" outside of one."""
    answer: list[Any] = []
    sys.audit("replaydbg.moment", answer, kind, text[:1000])
    return str(answer[0][0]) if answer else ""


class Cells:
    """The cells of a kernel's shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._number = 0
        self._recording = ""

    def begin(self, info: Any) -> None:
        """Mark the beginning of a cell: `@cell:3`. Its text is noted, too: `@code:TEXT`."""
        # Not by execution_count: some versions of IPython have counted this cell already.
        self._number = len(self._shell.history_manager.input_hist_raw) if info.store_history else 0
        if self._number:
            self._recording = note("cell", str(self._number)).rsplit(":", 2)[0]
            note("code", str(info.raw_cell))

    def end(self, result: Any) -> None:
        """Mark the end of a cell: `@cell:3 end`."""
        if self._number:
            note("cell", f"{self._number} end")
        self._number = 0

    def ask(self, line: str) -> None:
        """Ask the debugger about the recording so far: `%replaydbg why total`."""
        words = line.split(None, 1)
        if not words or words[0] not in QUESTIONS:
            print(USAGE)
        elif not self._recording:
            print("This kernel is not recorded: `replaydbg jupyter install` makes one that is.")
        else:
            try:
                arguments = self._arguments(words[0], words[1] if len(words) > 1 else "")
            except LookupError as error:
                print(f"replaydbg: {error}")
                return
            quiet = ["-q"] if words[0] in QUIET else []
            print(answer([TOOL, "-P", "-m", "replaydbg", words[0], *quiet, self._recording, *arguments]), end="")

    def _arguments(self, question: str, rest: str) -> list[str]:
        """Return the words of a question: an expression needs no quotes, and a cell is named by its number.

        Raises LookupError if there is no such cell, or a quotation mark is missing.
        """
        rest = _CELL.sub(lambda found: self._named(question, found), rest)
        plain: list[str] = []
        try:
            words = shlex.split(rest, posix=False)
        except ValueError:
            raise LookupError(f"a quotation mark is missing in: {rest}") from None
        while words and not words[0].startswith("--"):
            plain.append(words.pop(0))
        first = len(plain) if question == "diff" else 1 if question == "log" else 0
        expression = " ".join(plain[first:])
        return [*plain[:first], *([_unquoted(expression)] if expression else []), *map(_unquoted, words)]

    def _named(self, question: str, cell: re.Match[str]) -> str:
        """Return the place that `cell 3:2` means, or the moment that `cell 3` means. Raises LookupError."""
        number, line = int(cell[1]), cell[2]
        history = self._shell.history_manager
        if not 0 < number < len(history.input_hist_raw):
            raise LookupError(f"there is no cell {number}: the last one is {len(history.input_hist_raw) - 1}")
        if line is None and question != "log":
            return f"@cell:{number}"
        name = self._shell.compile.get_code_name(
            history.input_hist_raw[number], history.input_hist_parsed[number], number
        )
        return f"{name}:{line or 1}"


def _unquoted(word: str) -> str:
    is_quoted = len(word) > 1 and word[0] == word[-1] and word[0] in "'\""
    return word[1:-1] if is_quoted and word[0] not in word[1:-1] else word


def answer(command: list[str]) -> str:
    """Return what a command prints: at most MOST_BYTES within SECONDS, and a last line if that was not all."""
    # It is not a process of the recording, as a Python program that a cell starts is. Not by the argument `env`: that
    # would be recorded. A session of its own: an interrupt is for the kernel, which ends the command then.
    process = subprocess.Popen(
        [shutil.which("env") or "/usr/bin/env", *ENVIRONMENT, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        text, remark = _output(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
    return text + remark


def _output(process: subprocess.Popen[bytes]) -> tuple[str, str]:
    found = b""
    until = time.monotonic() + SECONDS
    with selectors.DefaultSelector() as selector:
        assert process.stdout is not None
        selector.register(process.stdout, selectors.EVENT_READ)
        while len(found) <= MOST_BYTES:
            left = until - time.monotonic()
            if left <= 0 or not selector.select(left):
                return _text(found), f"\n(given up after {SECONDS:.0f} s)\n"
            piece = os.read(process.stdout.fileno(), 1 << 16)
            if not piece:
                process.wait()
                return _text(found), ""
            found += piece
    return _text(found[:MOST_BYTES]), f"\n(cut off after {MOST_BYTES:,} bytes)\n"


def _text(found: bytes) -> str:
    return found.decode("utf-8", "replace")
