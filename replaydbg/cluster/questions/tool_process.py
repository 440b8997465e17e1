"""Run a command of replaydbg for a task, in a process of its own, and read the JSON that it prints."""

from __future__ import annotations

import json
import shlex
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from replaydbg.cluster.questions import tool_start
from replaydbg.cluster.tasks import JsonObject
from replaydbg.cluster.workplace import TaskImpossible, task_environment
from replaydbg.commits import start
from replaydbg.commits.worktree_commands import TimedOut, last_words, run_command
from replaydbg.errors import clause


def run_tool(
    module: str,
    words: Sequence[str],
    *,
    scratch: Path,
    cancel: threading.Event,
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float = 0.0,
) -> JsonObject:
    """Run a module as a program in `directory` (default: `scratch`), and return what it printed as JSON.

    `words` are its command line. `timeout` is in seconds, 0 for none; `environment` adds variables to ours. Its files
    go to `scratch`. Raises TaskImpossible with its last words if it printed no JSON, and GivenUp when `cancel` is set.
    """
    printed, errors = scratch / "printed.json", scratch / "errors.txt"
    # The shell only redirects: the two streams stay apart.
    command = shlex.join([sys.executable, str(Path(tool_start.__file__)), module, *words])
    shell = f"exec {command} >{shlex.quote(str(printed))}"
    try:
        # By `start`: it ends when this worker is killed.
        run_command(
            [sys.executable, str(Path(start.__file__)), shell],
            directory=directory or scratch,
            environment=task_environment() | dict(environment or {}),
            output=errors,
            timeout=timeout,
            cancel=cancel,
        )
    except TimedOut:
        raise TaskImpossible(f"it took longer than {timeout:g} s") from None
    try:
        answer: JsonObject = json.loads(printed.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        said = clause(last_words(errors, most=400).removeprefix("replaydbg check: ").removeprefix("replaydbg: "))
        raise TaskImpossible(said or "its process ended without an answer") from None
    return answer
