"""Run a command in a worktree: with a time limit, and cancellable together with its children."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_STEP = 0.02
"""Seconds between checks for a cancellation."""
_MERCY = 2.0
"""Seconds that a command has to exit after SIGTERM; a recorder seals its recording in this time."""


class TimedOut(Exception):
    """A command exceeded its time limit."""


class GivenUp(Exception):
    """A command was stopped because its result is no longer wanted."""


def run_command(
    command: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    output: Path,
    timeout: float,
    cancel: threading.Event,
) -> int:
    """Run `command` and return its status; its output goes to the file `output`.

    `timeout` is in seconds, 0 for none. Raises TimedOut, GivenUp when `cancel` is set, OSError if it cannot be started.
    """
    with output.open("wb") as file:
        # A session of its own: it can be ended with all that it starts, and a Ctrl-C at the terminal reaches only us.
        process = subprocess.Popen(
            command,
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + timeout if timeout else None
    try:
        while process.poll() is None:
            if cancel.wait(_STEP):
                raise GivenUp
            if deadline is not None and time.monotonic() > deadline:
                raise TimedOut
        return process.returncode
    finally:
        _end(process)


def last_words(output: Path, *, most: int = 100) -> str:
    """Return the last line of the output, or the message of the last traceback, at most `most` characters of it."""
    try:
        with output.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 65536, 0))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    starts = [number for number, line in enumerate(lines) if line.startswith("Traceback (most recent call last):")]
    # A message may have many lines; the first one names the exception.
    raised = [line for line in lines[starts[-1] + 1 :] if line[:1].strip()] if starts else []
    line = raised[0] if raised else next((line.strip() for line in reversed(lines) if line.strip()), "")
    line = "".join(char if char.isprintable() else " " for char in line)
    return line if len(line) <= most else line[: most - 3] + "..."


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the remaining processes of a command's session."""
    if process.poll() is None:
        _signal(process, signal.SIGTERM)
        try:
            process.wait(_MERCY)
        except subprocess.TimeoutExpired:
            _signal(process, signal.SIGKILL)
            process.wait()
    # Processes left behind would write into the next commit's worktree.
    _signal(process, signal.SIGKILL)


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return  # no process is left
