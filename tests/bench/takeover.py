"""How long a program stands still that is killed and has a standby: from the kill to its first line written there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.workloads import environment

NAME = "takeover"
ROUNDS = 10
"""At least; a round takes some three seconds."""
EVENTS = (0, 20_000)
"""Events of the program before it is killed, besides those of its lines; the takeover must not depend on them."""
# Each line has the time and the process: of the first line by another process, nothing else is needed.
_PROGRAM = """import os, sys, time
for _ in range(int(sys.argv[1])):
    time.time()
with open("lines", "ab", buffering=0) as file:
    while not os.path.exists("stop"):
        file.write(b"%d %d\\n" % (time.time_ns(), os.getpid()))
        time.sleep(0.001)
"""


class TakeoverFailed(Exception):
    """No standby took over, so there is no time."""


@dataclass(frozen=True, slots=True)
class TakeoverCosts:
    """Seconds from the kill to the first line, of each round, by number of events."""

    seconds: dict[str, list[float]]

    def as_text(self) -> str:
        """Return it as lines for people."""
        lines = ["from the kill of a program to the next line that its standby writes"]
        for events, taken in self.seconds.items():
            shown = f"median {median(taken) * 1e3:.0f} ms, at most {max(taken) * 1e3:.0f} ms, of {len(taken)} rounds"
            lines.append(f"  {int(events):>6,} events before: {shown}")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return it as data."""
        return asdict(self)


def measure_takeover(runs: int, timeout: float) -> TakeoverCosts:
    """Measure ROUNDS rounds, or `runs` if that is more, with each number of events. Raises TakeoverFailed."""
    costs = TakeoverCosts({})
    for _ in range(max(runs, ROUNDS)):
        for events in EVENTS:
            with tempfile.TemporaryDirectory(prefix="replaydbg-bench-") as directory:
                costs.seconds.setdefault(str(events), []).append(_takeover(Path(directory), events, timeout))
    return costs


def _takeover(folder: Path, events: int, timeout: float) -> float:
    (folder / "program.py").write_text(_PROGRAM)
    tool = [sys.executable, "-m", "replaydbg"]
    recorder = _begin([*tool, "record", "--children=none", "-q", "-o", "a.rdbg", "program.py", str(events)], folder)
    processes = [recorder]
    try:
        _wait_for(lambda: bool(_lines(folder)), timeout)
        processes.append(_begin([*tool, "resume", "--follow", "--in-flight=repeat", "-o", "b.rdbg", "a.rdbg"], folder))
        _wait_for(lambda: b"hot standby for" in (folder / "said").read_bytes(), timeout)
        # It has caught up then, also where the program made many events before.
        time.sleep(1.0 + events / 10_000)
        program = _lines(folder)[0][1]
        killed = time.time_ns()
        os.kill(program, signal.SIGKILL)
        _wait_for(lambda: _lines(folder)[-1][1] != program, timeout)
        (folder / "stop").touch()
        for each in processes:
            each.wait(timeout)
    except subprocess.TimeoutExpired as error:
        raise TakeoverFailed("the program does not end") from error
    finally:
        for each in processes:
            each.kill()
            each.wait()
    return (next(when for when, process in _lines(folder) if process != program) - killed) / 1e9


def _begin(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "said").open("ab") as said:
        return subprocess.Popen(command, cwd=folder, env=environment(), stdin=subprocess.DEVNULL, stderr=said)


def _lines(folder: Path) -> list[tuple[int, int]]:
    """Return time and process of each whole line."""
    path = folder / "lines"
    text = path.read_text() if path.exists() else ""
    found = [line.split() for line in text.split("\n")[:-1]]
    return [(int(when), int(process)) for when, process in found]


def _wait_for(condition: Callable[[], bool], timeout: float) -> None:
    until = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > until:
            raise TakeoverFailed("the program does not go on")
        time.sleep(0.01)
