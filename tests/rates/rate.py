"""Runs a racy program plainly and recorded, in turn: how often does each fail, and does each failure replay?"""

import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.harness import tool
from tests.harness.process import Finished, run
from tests.harness.surroundings import without_steering

# What a program ends with when its bug was met.
_BUG = 1
_TIMEOUT = 60.0
# Standard deviations: 95 %.
_Z = 1.96


@dataclass(frozen=True, slots=True)
class Interval:
    """A rate, with the interval in which the true one lies with a probability of 95 %.

    Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference, 1927.
    """

    failures: int
    runs: int

    @property
    def rate(self) -> float:
        """From 0 to 1."""
        return self.failures / self.runs

    @property
    def bounds(self) -> tuple[float, float]:
        """The lower and the upper end, from 0 to 1."""
        square = _Z * _Z / self.runs
        middle = (self.rate + square / 2) / (1 + square)
        half = _Z / (1 + square) * (self.rate * (1 - self.rate) / self.runs + square / 4 / self.runs) ** 0.5
        return middle - half, middle + half

    def overlaps(self, other: "Interval") -> bool:
        """Whether the two true rates may be the same."""
        return self.bounds[0] <= other.bounds[1] and other.bounds[0] <= self.bounds[1]

    def is_near(self, other: "Interval") -> bool:
        """Whether neither rate is more than twice the other one, or both may be the same."""
        low, high = sorted((self.rate, other.rate))
        return high <= 2 * low or self.overlaps(other)

    def __str__(self) -> str:
        low, high = self.bounds
        return f"{self.failures}/{self.runs} ({low:.0%} to {high:.0%})"


@dataclass(frozen=True, slots=True)
class Rated:
    """How often one program failed."""

    name: str
    plain: Interval
    recorded: Interval
    # Replays of failing recordings, and how many were equal.
    replays: int
    equal: int
    # The first run or replay that was not as it must be; None: there is none.
    failure: str | None

    @property
    def is_right(self) -> bool:
        """Whether recording leaves the rate about as it is, and all replays are equal."""
        return self.failure is None and self.plain.is_near(self.recorded)


class _Failed(Exception):
    """The message is the finding."""


def rate(program: Path, *, runs: int, thorough: int, replays: int, keep: Path) -> Rated:
    """Runs `program` plainly and recorded, `runs` times each, in turn.

    Each failing recording is replayed once, the first `thorough` ones `replays` times.
    """
    plain = recorded = asked = equal = 0
    failure = None
    with tempfile.TemporaryDirectory(prefix="replaydbg-rates-") as name:
        base = Path(name)
        for number in range(runs):
            recording = base / f"{program.stem}-{number}.rdbg"
            try:
                plain += _fails([sys.executable, str(program)], base)[0]
                command = tool.record(sys.executable, recording, [str(program)], ["--children=python"])  # the default
                is_failure, finished = _fails(command, base)
                times = 0 if not is_failure else replays if recorded < thorough else 1
                recorded += is_failure
                for _ in range(times):
                    asked += 1
                    equal += _replays(recording, finished, base)
            except _Failed as found:
                failure = f"run {number}: {found}"
                keep.mkdir(parents=True, exist_ok=True)
                shutil.copy(recording, keep)
                runs = number + 1
                break
            recording.unlink()
    return Rated(program.stem, Interval(plain, runs), Interval(recorded, runs), asked, equal, failure)


def _run(command: list[str], base: Path) -> Finished:
    return run(command, cwd=base, env=without_steering(os.environ), timeout=_TIMEOUT)


def _fails(command: list[str], base: Path) -> tuple[bool, Finished]:
    finished = _run(command, base)
    is_bug = b"BUG" in finished.stdout
    if finished.status != (_BUG if is_bug else 0):
        raise _Failed(f"{finished.ending}: {finished.stderr.decode(errors='replace')[-500:]}")
    return is_bug, finished


def _replays(recording: Path, recorded: Finished, base: Path) -> bool:
    replayed = _run(tool.replay(sys.executable, recording), base)
    if (replayed.status, replayed.stdout) != (recorded.status, recorded.stdout):
        raise _Failed(f"the replay differs: {replayed.ending}: {replayed.stderr.decode(errors='replace')[-500:]}")
    return True
