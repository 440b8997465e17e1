"""`replaydbg diff` of two moments of a run with a million objects: the command, from the user's view."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from subprocess import TimeoutExpired
from typing import Any

from tests.bench.answers import Answered, ask
from tests.bench.report import verdict
from tests.bench.workloads import environment
from tests.harness import tool
from tests.harness.process import run

NAME = "diff"
OBJECTS = 1_000_000
PROGRAM = Path(__file__).parent / "programs" / "many_objects.py"
# Seconds of CPU time.
TARGET = 0.4


class DiffFailed(Exception):
    """A command failed, so its time has no meaning."""


@dataclass(frozen=True, slots=True)
class DiffCosts:
    """Medians in seconds. The recording has its index, which an earlier command wrote."""

    objects: int
    # `replaydbg debug --batch`: the opening, which is part of all others.
    opened: float
    # CPU time of the command without that, with and without the search for writers.
    difference: float
    without_writers: float
    # Wall time from the command to its first row, and to its end.
    first: float
    ended: float
    target: float = TARGET

    def as_text(self) -> str:
        """Return it as lines for people."""
        return (
            f"diff of two moments, {self.objects:,} objects: {self.difference:.2f} s CPU (target {self.target:g}: "
            f"{verdict(self.difference, self.target)}), without writers {self.without_writers:.2f} s, besides "
            f"{self.opened:.2f} s to open; first row after {self.first:.2f} s of {self.ended:.2f} s wall"
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as data."""
        return asdict(self)


def measure_diff(runs: int, timeout: float, *, objects: int = OBJECTS) -> DiffCosts:
    """Record the program once and ask `runs` times. Raises DiffFailed."""
    with tempfile.TemporaryDirectory(prefix="replaydbg-bench-") as name:
        recording = Path(name) / "objects.rdbg"
        command = tool.record(sys.executable, recording, [str(PROGRAM), str(objects), "printed"])
        done = run(command, cwd=Path(name), env=environment(), timeout=timeout)
        if done.status != 0:
            raise DiffFailed(done.stderr.decode(errors="replace"))
        _asked(["debug", "--batch", str(recording)], timeout)  # writes the index
        asked = ["diff", "--quiet", str(recording), "@out:1", "@out:2"]
        opened, whole, bare = [], [], []
        for _ in range(max(runs, 1)):
            opened.append(_asked(["debug", "--batch", "--quiet", str(recording)], timeout).cpu)
            whole.append(_asked(asked, timeout))
            bare.append(_asked([*asked, "--no-writes"], timeout).cpu)
        opening = median(opened)
        return DiffCosts(
            objects=objects,
            opened=opening,
            difference=median(each.cpu for each in whole) - opening,
            without_writers=median(bare) - opening,
            first=median(each.first for each in whole),
            ended=median(each.ended for each in whole),
        )


def _asked(arguments: list[str], timeout: float) -> Answered:
    command = [sys.executable, "-m", "replaydbg", *arguments]
    try:
        answered = ask(command, timeout)
    except TimeoutExpired as error:
        raise DiffFailed(str(error)) from error
    # 1: there is a difference.
    if answered.status not in (0, 1):
        raise DiffFailed(f"{' '.join(arguments)}: exit code {answered.status}")
    return answered
