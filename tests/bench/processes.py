"""The cost of recording several processes: a fork, a started Python, a transfer, and the size of each recording."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.report import verdict
from tests.bench.workloads import environment
from tests.harness import tool
from tests.harness.process import run

NAME = "processes"
# Milliseconds, milliseconds, microseconds, and a ratio.
FORK_TARGET, START_TARGET, TRANSFER_TARGET, SIZE_TARGET = 1.0, 5.0, 0.15, 1.15
FORKS, STARTS, TRANSFERS, MEMBERS = 200, 10, 200_000, 8
_SUBREAPER = 36

_FORK = f"""import os, resource
def used():
    both = [resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in both)
began = used()
for _ in range({FORKS}):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
print((used() - began) / {FORKS})
"""
_START = f"""import os, sys
for _ in range({STARTS}):
    os.waitpid(os.posix_spawn(sys.executable, [sys.executable, "-c", "pass"], os.environ), 0)
"""
_TRANSFER = f"""import os, time
reading, writing = os.pipe()
data = bytes(100)
began = time.process_time()
for _ in range({TRANSFERS // 2}):
    os.write(writing, data)
    os.read(reading, 100)
print((time.process_time() - began) / {TRANSFERS})
"""
_MEMBER = "import json, logging, subprocess\nprint(sum(range(100)))\n"
_MEMBERS = f"""import subprocess, sys
for _ in range({MEMBERS - 1}):
    subprocess.run([sys.executable, "member.py"], check=True)
import json, logging
print(sum(range(100)))
"""


class ProcessesFailed(Exception):
    """A process failed, so its cost has no meaning."""


@dataclass(frozen=True, slots=True)
class ProcessCosts:
    """Medians of paired rounds."""

    # Milliseconds of CPU time, of parent and child, that a fork takes more when the child is recorded.
    fork_ms: float
    # Milliseconds of CPU time, sealing included: of a Python started in a group, and of one that is recorded alone.
    started_ms: float
    alone_ms: float
    # Microseconds of CPU time that a transfer takes more in a group.
    transfer_us: float
    # Bytes for each process of a group of eight, and for one of them alone.
    member_bytes: int
    alone_bytes: int

    def as_text(self) -> str:
        """Return it as lines for people."""
        more, times = self.started_ms - self.alone_ms, self.member_bytes / self.alone_bytes
        rows = (
            ("fork", f"{self.fork_ms:+.2f} ms CPU", self.fork_ms, FORK_TARGET, f"+{FORK_TARGET:g} ms"),
            (
                "started Python",
                f"{self.started_ms:.1f} ms CPU, alone {self.alone_ms:.1f} ms",
                more,
                START_TARGET,
                f"+{START_TARGET:g} ms",
            ),
            (
                "transfer",
                f"{self.transfer_us:+.3f} us CPU",
                self.transfer_us,
                TRANSFER_TARGET,
                f"+{TRANSFER_TARGET:g} us",
            ),
            (
                "size",
                f"{self.member_bytes:,} bytes for each of {MEMBERS}, alone {self.alone_bytes:,}",
                times,
                SIZE_TARGET,
                f"{SIZE_TARGET:g} times",
            ),
        )
        lines = ["several processes (medians)"]
        lines += [
            f"  {name:<15} {text} (target {target}: {verdict(found, limit)})"
            for name, text, found, limit, target in rows
        ]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return it as data."""
        return asdict(self)


def measure_processes(runs: int, timeout: float) -> ProcessCosts:
    """Measure each in `runs` paired rounds; `timeout` is in seconds for each command. Raises ProcessesFailed."""
    with tempfile.TemporaryDirectory(prefix="replaydbg-bench-") as name:
        place = _Place(Path(name), timeout)
        rounds = [place.turn(number) for number in range(max(runs, 1))]
    middle = {name: median(each[name] for each in rounds) for name in rounds[0]}
    return ProcessCosts(
        middle["fork_ms"],
        middle["started_ms"],
        middle["alone_ms"],
        middle["transfer_us"],
        int(middle["member_bytes"]),
        int(middle["alone_bytes"]),
    )


@dataclass
class _Place:
    """A directory with the programs."""

    directory: Path
    timeout: float

    def __post_init__(self) -> None:
        programs = {"fork": _FORK, "start": _START, "transfer": _TRANSFER, "member": _MEMBER, "members": _MEMBERS}
        for name, source in programs.items():
            (self.directory / f"{name}.py").write_text(source)
        (self.directory / "nothing.py").write_text("pass\n")

    def turn(self, number: int) -> dict[str, float]:
        """Run everything once."""
        fork = self._printed("fork", number, "fork") - self._printed("fork", number, "plain")
        transfer = self._printed("transfer", number, "fork") - self._printed("transfer", number, "none")
        # The first program of the group costs what one costs that starts as many unrecorded.
        started = self._cpu("start", number, "python") - self._cpu("start", number, "none")
        alone = self._cpu("nothing", number, "none") - self._cpu("nothing", number, "plain")
        self._cpu("members", number, "python")
        self._cpu("member", number, "none")
        group = self.directory / f"members-{number}-python.rdbgs"
        return {
            "fork_ms": fork * 1e3,
            "transfer_us": transfer * 1e6,
            "started_ms": started / STARTS * 1e3,
            "alone_ms": alone * 1e3,
            "member_bytes": sum(path.stat().st_size for path in group.rglob("*") if path.is_file()) / MEMBERS,
            "alone_bytes": (self.directory / f"member-{number}-none.rdbg").stat().st_size,
        }

    def _command(self, name: str, number: int, children: str) -> list[str]:
        program = [f"{name}.py"]
        if children == "plain":
            return [sys.executable, *program]
        options = [f"--children={children}"]
        return tool.record(sys.executable, self.directory / f"{name}-{number}-{children}", program, options=options)

    def _printed(self, name: str, number: int, children: str) -> float:
        done = run(self._command(name, number, children), cwd=self.directory, env=environment(), timeout=self.timeout)
        if done.status != 0:
            raise ProcessesFailed(done.stderr.decode(errors="replace"))
        return float(done.stdout)

    def _cpu(self, name: str, number: int, children: str) -> float:
        """Return the CPU seconds of a command with all processes that it leaves, such as the one that seals."""
        command = [sys.executable, "-m", "tests.bench.processes", str(self.directory)]
        command += self._command(name, number, children)
        root = Path(__file__).parents[2]
        done = run(command, cwd=root, env=environment(), timeout=self.timeout)
        if done.status != 0:
            raise ProcessesFailed(done.stderr.decode(errors="replace"))
        return float(json.loads(done.stdout.splitlines()[-1]))


def main(directory: str, command: Sequence[str]) -> None:
    """Run a command in a directory and print the CPU seconds of all of its processes."""
    if ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    subprocess.run(command, cwd=directory, stdout=subprocess.DEVNULL, check=True)
    while True:
        try:
            os.wait()  # those whose parent has ended are ours
        except ChildProcessError:
            break
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps(used.ru_utime + used.ru_stime))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
