"""The cost to bring a killed program back, for each event of its recording, and that of its events from then on.

All figures are CPU time, paired in one round with the same program plain and recorded.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.workloads import environment
from tests.harness import tool
from tests.harness.process import Finished, run

NAME = "resume"
EVENTS = 300_000
"""Of the run before the kill."""
LIVE = 1_000_000
"""Of the run after it: going live itself takes some milliseconds."""
TARGET_US = 2.0
"""Microseconds until the program is live for each event: 500,000 events a second."""
TARGET_LIVE = 1.05
"""The cost of an event of a resumed program, to that of a recorded one."""
_SKIPPED = "--in-flight=skip"
# It kills itself, so the call in flight is known. The last line is the time of its second half.
_PROGRAM = """import os, signal, sys, time
count, is_killed = int(sys.argv[1]), sys.argv[2] == "killed"
def ask(count):
    began = time.process_time()
    for _ in range(count):
        os.getppid()
    return time.process_time() - began
ask(count)
if is_killed:
    os.kill(os.getpid(), signal.SIGKILL)
print(ask(int(sys.argv[3])))
"""
_KILLED = (-9, 128 + 9)


class ResumeFailed(Exception):
    """The program did not end as it must, so its times have no meaning."""


@dataclass(frozen=True, slots=True)
class ResumeCosts:
    """Figures of each round."""

    until_live: list[float]
    """Microseconds of CPU time for each event of the recording until the program was live, start-up subtracted."""
    replayed: list[float]
    """The part of it that the replay takes, measured with `replaydbg replay` of the same recording."""
    plain: list[float]
    """Microseconds for each event of the plain program."""
    recorded: list[float]
    """Microseconds for each event of the recorded program."""
    live: list[float]
    """Microseconds for each event of the resumed program, once it is live."""

    @property
    def live_ratio(self) -> float:
        """The cost of a live event, to that of a recorded one: the median of the rounds."""
        return median(live / recorded for live, recorded in zip(self.live, self.recorded, strict=True))

    def as_text(self) -> str:
        """Return it as lines for people."""
        until, replayed = median(self.until_live), median(self.replayed)
        rate = f"{1e6 / max(until, 1e-9):,.0f} events a second"
        each = f"plain {median(self.plain):.2f} us, recorded {median(self.recorded):.2f} us"
        return "\n".join(
            (
                f"resume of {EVENTS:,} events, CPU time of one event, median of {len(self.live)} rounds",
                f"  until it is live  {until:.2f} us ({rate}), of which replay {replayed:.2f} us",
                f"  from then on      {median(self.live):.2f} us ({each}; to recorded {self.live_ratio:.2f})",
            )
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as data."""
        return asdict(self) | {"live_ratio": self.live_ratio, "target_us": TARGET_US, "target_live": TARGET_LIVE}


def measure_resume(runs: int, timeout: float) -> ResumeCosts:
    """Measure `runs` rounds. Raises ResumeFailed."""
    costs = ResumeCosts([], [], [], [], [])
    with tempfile.TemporaryDirectory(prefix="replaydbg-bench-") as directory:
        folder = Path(directory)
        (folder / "program.py").write_text(_PROGRAM)
        for _ in range(max(runs, 1)):
            _round(folder, timeout, costs)
    return costs


def _round(folder: Path, timeout: float, costs: ResumeCosts) -> None:
    empty_run, dead_run, live_run = (0, 0), (EVENTS, 0), (0, LIVE)
    plain = _run(folder, [sys.executable, *_words(*live_run, "plain")], timeout)
    recorded = _run(folder, _record(folder, "r", _words(*live_run, "plain")), timeout)
    taken = []
    for before, after in (empty_run, dead_run, live_run):
        _run(folder, _record(folder, "k", _words(before, after, "killed")), timeout, is_killed=True)
        replayed = _run(folder, tool.replay(sys.executable, folder / "k.rdbg"), timeout, is_killed=True)
        (folder / "n.rdbg").unlink(missing_ok=True)
        command = [sys.executable, "-m", "replaydbg", "resume", "-q", _SKIPPED, "-o", "n.rdbg", "k.rdbg"]
        taken.append((_run(folder, command, timeout), replayed))
    (empty, empty_replay), (long, long_replay), (live, _) = taken
    costs.until_live.append(1e6 * (long.cpu - empty.cpu) / EVENTS)
    costs.replayed.append(1e6 * (long_replay.cpu - empty_replay.cpu) / EVENTS)
    for kind, found in ((costs.plain, plain), (costs.recorded, recorded), (costs.live, live)):
        kind.append(1e6 * float(found.stdout) / LIVE)


def _words(before: int, after: int, how: str) -> list[str]:
    return ["program.py", str(before), how, str(after)]


def _record(folder: Path, name: str, words: list[str]) -> list[str]:
    (folder / f"{name}.rdbg").unlink(missing_ok=True)
    return tool.record(sys.executable, folder / f"{name}.rdbg", words, options=["--children=none"])


def _run(folder: Path, command: list[str], timeout: float, *, is_killed: bool = False) -> Finished:
    done = run(command, cwd=folder, env=environment(), timeout=timeout)
    if done.status not in ((*_KILLED, tool.ENDS_EARLY) if is_killed else (0,)):
        raise ResumeFailed(f"{done.ending}: {done.stderr.decode(errors='replace')}")
    return done
