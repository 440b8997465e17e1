"""The time from the start of a command to the first byte of its answer, and to its end."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.workloads import environment

_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Answered:
    """A command that printed an answer and ended. Seconds."""

    # Wall time from the command to the first byte of the answer.
    first: float
    # Wall time to its end: all processes have exited.
    ended: float
    # CPU time of the command and of all processes that it waited for.
    cpu: float
    status: int


def ask(command: Sequence[str], timeout: float) -> Answered:
    """Run a command to its end. Raises TimeoutExpired if nothing is printed in time."""
    began = time.monotonic()
    with subprocess.Popen(
        command,
        cwd=_ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None, "it was asked for"
        if not select.select([process.stdout], [], [], timeout)[0]:
            process.kill()
            raise subprocess.TimeoutExpired(command, timeout)
        first = time.monotonic() - began
        process.stdout.read()
        _, wait_status, usage = os.wait4(process.pid, 0)
        # Popen must not wait for a process that no longer exists.
        process.returncode = os.waitstatus_to_exitcode(wait_status)
    return Answered(first, time.monotonic() - began, usage.ru_utime + usage.ru_stime, process.returncode)
