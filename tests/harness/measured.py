"""Run one command and measure it alone.

The kernel reports as the peak memory of a process at least that of the process which started it, and the suite's own
process can have more than a limit that is tested. So a small process stands between.
"""

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_BETWEEN = """
import json, os, subprocess, sys
process = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
process.returncode = os.waitstatus_to_exitcode(status)
with open(int(sys.argv[1]), "w") as file:
    json.dump([process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10], file)
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """How a command ended and what it took."""

    status: int
    """Exit code, or minus the number of the signal that ended it."""
    stderr: str
    cpu: float
    """Seconds of the process and of every child that was waited for."""
    peak: int
    """Bytes of the largest of them."""


def measured(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], addresses: int = 0, timeout: float = 120.0
) -> Measured:
    """Run `command` without its stdout; it may use that many bytes of address space, 0: any number."""
    with tempfile.TemporaryFile() as result:
        process = subprocess.run(
            [sys.executable, "-IS", "-c", _BETWEEN, str(result.fileno()), *command],
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=[result.fileno()],
            preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))) if addresses else None,
            timeout=timeout,
            check=True,
        )
        result.seek(0)
        status, cpu, peak = json.load(result)
    return Measured(status, process.stderr.decode(), cpu, peak)
