"""Questions that a command of the command line answers, in a process of its own or as a listing of the store."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import IO, Any

from replaydbg.commits import start
from replaydbg.debugger.session_results import WorkProgress
from replaydbg.errors import UsageError
from replaydbg.mcp.answers import AgentAnswer, NextQuestion
from replaydbg.render.recording_text import listing_text
from replaydbg.store.catalog import Catalog
from replaydbg.store.directory import Store
from replaydbg.store.selection import Selection

MOST_ROWS = 200

EVERY = 0.05
"""Seconds between two looks whether the question was cancelled."""

PATIENCE = 10.0
"""Seconds that a command that is ended has to seal what it records."""

MOST_OUTPUT = 65536
"""Bytes that are read of what a command has printed, at its end."""

VERDICTS = {0: "passes", 1: "fails", 125: "cannot be tested"}
"""What exit codes of `check` mean."""

Progressed = Callable[[WorkProgress], None]


def recordings(store: Store, answer: AgentAnswer, given: dict[str, Any]) -> None:
    """List recordings, newest first."""
    wanted = Selection(
        has_failed=given.get("failed"), exception=given.get("exception", ""), command=given.get("command", "")
    )
    rows = [each for each in Catalog(store, listing_text).selected(*wanted.as_sql()) if wanted.matches(each, ())]
    rows.reverse()
    first = given.get("first", 1)
    shown = list(islice(rows, first - 1, first - 1 + MOST_ROWS))
    lines = [" | ".join(part for part in listing_text(each).split("\t") if part) for each in shown]
    answer.add(
        "recordings",
        lines or ["none"],
        first=first,
        is_more=first - 1 + len(shown) < len(rows),
        more=lambda number: NextQuestion("recordings", {**given, "first": number}),
    )
    failed = next((each for each in shown if each.status and not each.problem), None)
    if failed is not None:
        answer.next.append(NextQuestion("failure", {"recording": failed.name}))


def check_source(answer: AgentAnswer, given: dict[str, Any], check: Callable[[], None], progressed: Progressed) -> None:
    """Say whether the program still fails with today's source files, by `replaydbg check`."""
    expression = given.get("expression", "")
    words = ["check", *([f"--expr={expression}"] if expression else []), "--", given["recording"]]
    status, lines = _Command(words, ".", check, progressed).run()
    if status not in VERDICTS:
        raise UsageError(" ".join(lines) or f"replaydbg check exited with code {status}.")
    answer.add("result", [f"with today's source files it {VERDICTS[status]}", *lines])


def run(answer: AgentAnswer, given: dict[str, Any], check: Callable[[], None], progressed: Progressed) -> None:
    """Run a program live, by a command that records it."""
    folder = given.get("directory") or "."
    if not Path(folder).is_dir():
        raise UsageError(f"No such directory: {folder!r}.")
    status, lines = _Command([given["command"], *given["arguments"]], folder, check, progressed).run()
    answer.add("outcome", [f"replaydbg {given['command']} exited with code {status}"])
    answer.add("output", lines, keeps="tail")
    answer.next.append(NextQuestion("failure", {"recording": "latest"}))


class _Command:
    """A command of the command line in a process of its own, which ends with this one."""

    def __init__(self, words: list[str], folder: str, check: Callable[[], None], progressed: Progressed) -> None:
        self._words, self._folder, self._check, self._progressed = words, folder, check, progressed

    def run(self) -> tuple[int, list[str]]:
        """Run it to its end; return its exit code, and what it printed. Raises UsageError and Cancelled."""
        command = shlex.join([sys.executable, "-m", "replaydbg", *self._words])
        with tempfile.TemporaryFile() as output:
            try:
                process = subprocess.Popen(
                    [sys.executable, start.__file__, f"exec {command}"],
                    cwd=self._folder,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise UsageError(f"The command cannot be started: {error}.") from None
            self._wait(process)
            return process.returncode, _last_lines(output)

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        began = time.monotonic()
        try:
            while process.poll() is None:
                self._check()
                self._progressed(WorkProgress(f"replaydbg {self._words[0]}", 0.0, time.monotonic() - began))
                time.sleep(EVERY)
        finally:
            if process.poll() is None:
                _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    # A recorder passes it on to the program, and seals what there is.
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _last_lines(output: IO[bytes]) -> list[str]:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(size - MOST_OUTPUT, 0))
    return output.read().decode("utf-8", "replace").splitlines()
