"""The cost of `record --durable` for each output that waits for the log: wall time, paired with recording and plain."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.workloads import environment
from tests.harness import tool
from tests.harness.process import run

NAME = "durable"
OUTPUTS = 2000
THREADS = (1, 8, 32)
_MODES = ("plain", "recorded", "durable")
# Each thread sends bytes, one at a time, and receives them itself: nobody else's speed is in the figures.
_PROGRAM = f"""import socket, sys, threading, time
def send(count):
    here, there = socket.socketpair()
    for _ in range(count):
        here.send(b"x")
        there.recv(1)
threads = [threading.Thread(target=send, args=({OUTPUTS} // int(sys.argv[1]),)) for _ in range(int(sys.argv[1]))]
began = time.perf_counter()
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print((time.perf_counter() - began) / {OUTPUTS})
"""


class DurableFailed(Exception):
    """The program failed, so its times have no meaning."""


@dataclass(frozen=True, slots=True)
class DurableCosts:
    """Seconds for one output in each round, by mode and number of threads."""

    seconds: dict[str, list[float]]
    # Of a mapped page after a small change, without any recording; in the same directory.
    synchronisations: list[float]

    def as_text(self) -> str:
        """Return it as lines for people."""
        lines = [f"wall time of one output, median of {len(self.seconds[f'plain, {THREADS[0]}'])} rounds"]
        for threads in THREADS:
            each = [f"{mode} {median(self.seconds[f'{mode}, {threads}']) * 1e6:,.0f} us" for mode in _MODES]
            lines.append(f"  {threads:>2} threads     {', '.join(each)}")
        taken = sorted(self.synchronisations)
        late = taken[len(taken) * 95 // 100] * 1e6
        lines.append(f"  fdatasync alone {median(taken) * 1e6:,.0f} us, {late:,.0f} us in the 95th percentile")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return it as data."""
        return asdict(self)


def measure_durable(runs: int, timeout: float) -> DurableCosts:
    """Measure `runs` rounds, each with every mode and number of threads. Raises DurableFailed."""
    costs = DurableCosts({}, [])
    # Not in /tmp, which may be memory.
    with tempfile.TemporaryDirectory(prefix="replaydbg-bench-", dir="/var/tmp") as directory:
        folder = Path(directory)
        (folder / "program.py").write_text(_PROGRAM)
        for number in range(max(runs, 1)):
            for threads in THREADS:
                for mode in _MODES if number % 2 else reversed(_MODES):
                    found = _output(folder, mode, threads, timeout)
                    costs.seconds.setdefault(f"{mode}, {threads}", []).append(found)
            costs.synchronisations.extend(_synchronisations(folder / "page"))
    return costs


def _output(folder: Path, mode: str, threads: int, timeout: float) -> float:
    words = ["program.py", str(threads)]
    options = ["--durable"] if mode == "durable" else []
    (folder / "r.rdbg").unlink(missing_ok=True)
    command = [sys.executable, *words]
    if mode != "plain":
        command = tool.record(sys.executable, folder / "r.rdbg", words, options=options)
    done = run(command, cwd=folder, env=environment(), timeout=timeout)
    if done.status != 0:
        raise DurableFailed(done.stderr.decode(errors="replace"))
    return float(done.stdout)


def _synchronisations(path: Path) -> list[float]:
    """Return how long 100 synchronisations take, each after 50 more bytes."""
    taken = []
    with path.open("wb", buffering=0) as file:
        os.posix_fallocate(file.fileno(), 0, 1 << 20)
        for _ in range(100):
            file.write(b"x" * 50)
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - began)
    return taken
