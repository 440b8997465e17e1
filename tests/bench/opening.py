"""How long a recording takes to open, phase by phase.

`python -m tests.bench.opening FILE RECORDING` does what `replaydbg debug --batch RECORDING` does, and writes the phases
to FILE.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replaydbg.cli.main import main
from replaydbg.engine.reports import EndReport
from replaydbg.engine.travel import Travel
from tests.bench.answers import ask


@dataclass(frozen=True, slots=True)
class Phases:
    """Seconds of wall time."""

    # The keeper and the replay are started; the program is before its first line.
    start: float
    # The first pass: the whole program under the step clock, leaving checkpoints.
    first_pass: float


@dataclass(frozen=True, slots=True)
class CommandOpening:
    """`replaydbg debug --batch`, from the user's view. Seconds of wall time."""

    # From the command to the first byte of the answer.
    answered: float
    # To its end: all processes have exited.
    ended: float
    phases: Phases
    # CPU time of all its processes.
    cpu: float = 0.0

    @property
    def besides(self) -> float:
        """The time besides the first pass until the answer."""
        return self.answered - self.phases.first_pass


@contextmanager
def phases_noted() -> Iterator[list[Phases]]:
    """In this context each `Travel` that runs its first pass appends its phases to the list."""
    noted: list[Phases] = []
    plain_init, plain_pass = Travel.__init__, Travel.first_pass
    started = 0.0

    def init(self: Travel, *args: Any, **options: Any) -> None:
        nonlocal started
        began = time.monotonic()
        plain_init(self, *args, **options)
        started = time.monotonic() - began

    def first_pass(self: Travel, idle: Callable[[], None] | None = None) -> EndReport:
        began = time.monotonic()
        ended = plain_pass(self, idle)
        noted.append(Phases(started, time.monotonic() - began))
        return ended

    Travel.__init__, Travel.first_pass = init, first_pass  # type: ignore[method-assign]
    try:
        yield noted
    finally:
        Travel.__init__, Travel.first_pass = plain_init, plain_pass  # type: ignore[method-assign]


def open_by_command(recording: Path, notes: Path, timeout: float) -> CommandOpening:
    """Run the command to its end; it writes `notes`. Raises CalledProcessError and TimeoutExpired."""
    command = [sys.executable, "-m", "tests.bench.opening", str(notes), str(recording)]
    answered = ask(command, timeout)
    if answered.status != 0:
        raise subprocess.CalledProcessError(answered.status, command)
    start, first_pass = json.loads(notes.read_text())
    return CommandOpening(answered.first, answered.ended, Phases(start, first_pass), answered.cpu)


def _main() -> int:
    notes, recording = sys.argv[1:]
    with phases_noted() as noted:
        status = main(["debug", "--batch", "--quiet", recording])
    Path(notes).write_text(json.dumps([noted[0].start, noted[0].first_pass]))
    return status


if __name__ == "__main__":
    sys.exit(_main())
