"""What futures of a small program cost: each one, those that are kept, a curve; and how good a share is after 64."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.report import verdict
from tests.bench.workloads import environment
from tests.harness import tool
from tests.harness.process import Finished, run

NAME = "futures"
PROGRAM = Path(__file__).parents[2] / "fixtures" / "futures" / "bank_transfer.py"
MANY, FEW, KEPT = 512, 64, 40
RATE_TARGET, STORED_TARGET, CURVE_TARGET, SHARE_TARGET = 100.0, 250_000, 10.0, 0.10
"""Futures a second of one processor, bytes of 40 futures, seconds, and how far a share may be off."""


class FuturesFailed(Exception):
    """A command failed, or a future was inconclusive, so its figure has no meaning."""


@dataclass(frozen=True, slots=True)
class FutureCosts:
    """What was measured."""

    rates: tuple[float, ...]
    """Futures a second of processor time, all processes counted, one at a time; without the replay of the past."""
    stored: int
    """Bytes that a store grows by with 40 futures, each of them kept."""
    curves: tuple[float, ...]
    """Seconds of wall time: 32 futures from each of ten moments or more."""
    moments: int
    """Of a curve."""
    share: float
    """Of failures among 512 futures."""
    early: tuple[float, ...]
    """The same among each 64 of them."""

    @property
    def farthest(self) -> float:
        """How far the share after 64 is off, at most."""
        return max(abs(each - self.share) for each in self.early)

    def as_text(self) -> str:
        """Return it as lines for people."""
        rate, curve, off = median(self.rates), median(self.curves), 100 * self.farthest
        each = verdict(1000 / rate, 1000 / RATE_TARGET)
        kept, goal = verdict(self.stored, STORED_TARGET), STORED_TARGET / 1000
        fast, near = verdict(curve, CURVE_TARGET), verdict(self.farthest, SHARE_TARGET)
        return "\n".join(
            [
                f"futures of {PROGRAM.stem}",
                f"  {rate:.0f} a second of processor time ({each}, target {RATE_TARGET:.0f})",
                f"  {KEPT} stored in {self.stored / 1000:.0f} kB ({kept}, target {goal:.0f})",
                f"  a curve over {self.moments} moments in {curve:.1f} s ({fast}, target {CURVE_TARGET:.0f})",
                f"  the share of failures among {MANY} is {self.share:.0%}; among each {FEW} it is off by up to "
                f"{off:.0f} points ({near}, target {100 * SHARE_TARGET:.0f})",
            ]
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as data."""
        return asdict(self)


def measure_futures(runs: int, timeout: float, *, many: int = MANY) -> FutureCosts:
    """Make futures of a program that transfers money without a lock. Raises FuturesFailed."""
    with tempfile.TemporaryDirectory(prefix="replaydbg-bench-") as name:
        ground = _Ground(Path(name), timeout)
        ground.record()
        rates, curves, verdicts, moments = [], [], [False], 0
        for _ in range(runs):
            made, cpu = ground.futures("-n", str(many), "--jobs", "1")
            _, before = ground.futures("-n", "1", "--jobs", "1")
            rates.append((many - 1) / (cpu - before))
            verdicts = list(_verdicts(made))
            curve, _ = ground.futures("--curve")
            curves.append(curve["seconds"])
            moments = curve["moments"]
        empty = ground.size()
        ground.futures("-n", str(KEPT), "--keep", "all")
        stored = ground.size() - empty
    early = [verdicts[first : first + FEW] for first in range(0, many, FEW)]
    shares = tuple(sum(each) / len(each) for each in early)
    return FutureCosts(tuple(rates), stored, tuple(curves), moments, sum(verdicts) / len(verdicts), shares)


def _verdicts(made: dict[str, Any]) -> Iterator[bool]:
    """Yield whether each future failed, in the order of their seeds."""
    failed = {seed for group in made["groups"] if group["verdict"] == "failed" for seed in group["seeds"]}
    if made["inconclusive"]:
        raise FuturesFailed(f"{made['inconclusive']} futures were inconclusive")
    yield from (seed in failed for seed in range(1, made["futures"] + 1))


class _Ground:
    """A directory with the program and a store."""

    def __init__(self, folder: Path, timeout: float) -> None:
        self._folder, self._timeout = folder, timeout
        self._store = folder / "store"
        self._store.mkdir()

    def record(self) -> None:
        """Record a run that passes, in the store."""
        for _ in range(20):
            if self._run(tool.record(sys.executable, self._store / "one.rdbg", [str(PROGRAM)])).status == 0:
                return
        raise FuturesFailed("no run passed")

    def futures(self, *words: str) -> tuple[dict[str, Any], float]:
        """Return what a command answers, and its seconds of processor time."""
        command = [sys.executable, "-m", "replaydbg", "futures", str(self._store / "one.rdbg"), "--json", "-q", *words]
        finished = self._run(command)
        if finished.status not in (0, 1):
            raise FuturesFailed(finished.stderr.decode(errors="replace"))
        return json.loads(finished.stdout), finished.cpu

    def size(self) -> int:
        """Return the bytes of all files of the store."""
        return sum(path.stat().st_size for path in self._store.rglob("*") if path.is_file())

    def _run(self, command: list[str]) -> Finished:
        env = {**environment(), "REPLAYDBG_STORE": str(self._store)}
        return run(command, cwd=self._folder, env=env, timeout=self._timeout)
