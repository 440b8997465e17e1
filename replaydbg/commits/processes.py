"""Runs a command in a worktree: with a limit of time, and so that it can be given up together with its children."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_STEP = 0.02
"""Seconds between looks at whether it is to be given up."""
_MERCY = 2.0
"""Seconds that a command has to end by itself after SIGTERM; a recorder seals its recording in them."""


class TimedOut(Exception):
    """A command took longer than it may."""


class GivenUp(Exception):
    """A command was stopped because its answer is wanted no more."""


def run_command(
    command: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    output: Path,
    timeout: float,
    cancel: threading.Event,
) -> int:
    """Run `command` and return its status; what it prints goes to the file `output`.

    `timeout` is in seconds, 0 for none. Raises TimedOut, GivenUp when `cancel` is set, OSError if it cannot be started.
    """
    with output.open("wb") as file:
        # A session of its own: it can be ended with all that it starts, and a Ctrl-C at the terminal comes to us alone.
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
    """Return the last line that was printed, or what the last traceback says, at most `most` characters of it."""
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
    """End what is left of a command's session."""
    if process.poll() is None:
        _signal(process, signal.SIGTERM)
        try:
            process.wait(_MERCY)
        except subprocess.TimeoutExpired:
            _signal(process, signal.SIGKILL)
            process.wait()
    # What it has started and left behind would write into the next commit's worktree.
    _signal(process, signal.SIGKILL)


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return  # nobody is left
