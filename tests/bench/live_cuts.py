"""The throughput of programs of several processes with and without a live cut each second, paired."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.cuts import BANK
from tests.bench.report import verdict
from tests.bench.service import PAIRS, CutCost, ServiceFailed, ask, cost_of_cuts, median_interval, recorded_service
from tests.bench.workloads import environment
from tests.harness import tool
from tests.harness.children import CHILDREN, completed
from tests.harness.process import run

NAME = "live-cuts"
# The share of the throughput that must be left.
TARGET = 0.98
EVERY = "--cut-every=1s"
BANK_ROUNDS = 10_000
CLIENTS, REQUESTS = 4, 3_000
_TIMED_BANK = f"""import runpy, sys, time
sys.argv[1:] = ["{BANK_ROUNDS}"]
began = time.perf_counter()
runpy.run_path({str(BANK)!r}, run_name="__main__")
print({BANK_ROUNDS} / (time.perf_counter() - began))
"""


class LiveCutsFailed(Exception):
    """A program failed, or no cut was taken, so its throughput has no meaning."""


@dataclass(frozen=True, slots=True)
class LiveCutCosts:
    """Throughput by the name of the program, a second, recorded, in each round."""

    without: dict[str, list[float]]
    with_cuts: dict[str, list[float]]
    # Live cuts in all rounds.
    cuts: dict[str, int]
    # Why a program was not measured.
    missing: dict[str, str]
    # The CPU time of a request of uvicorn, with live cuts against without.
    cpu: CutCost | None = None

    def ratio(self, name: str) -> float:
        """Return the median of the ratios of each round: with cuts against without."""
        pairs = zip(self.with_cuts[name], self.without[name], strict=True)
        return median(more / less for more, less in pairs)

    def as_text(self) -> str:
        """Return it as lines for people."""
        lines = [f"throughput with a live cut each second against without (target at least {TARGET:.2f})"]
        for name, without in self.without.items():
            ratio = self.ratio(name)
            pairs = [more / less for more, less in zip(self.with_cuts[name], without, strict=True)]
            lines.append(
                f"  {name:<15} {median(without):,.0f} a second, with {self.cuts[name]} cuts "
                f"{median(self.with_cuts[name]):,.0f}: {ratio:.3f} ({verdict(TARGET, ratio)}), "
                f"rounds {min(pairs):.3f} to {max(pairs):.3f}"
            )
        if self.cpu is not None:
            found, one = median_interval(self.cpu.ratios), self.cpu.of_one_a_second
            rate = self.cpu.cuts / self.cpu.seconds
            lines += [
                f"  CPU time of a request of uvicorn with {rate:.0f} cuts a second against none: {found.median:.3f}, "
                f"95 % between {found.low:.3f} and {found.high:.3f} ({len(self.cpu.ratios):,} pairs of blocks)",
                f"  so with one cut a second {one.median:.4f}, between {one.low:.4f} and {one.high:.4f} "
                f"(target at most {1 / TARGET:.2f}: {verdict(one.high, 1 / TARGET)})",
            ]
        lines += [f"  {name:<15} {reason}" for name, reason in self.missing.items()]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return it as data."""
        return asdict(self)


def measure_live_cuts(runs: int, timeout: float) -> LiveCutCosts:
    """Measure each program in `runs` paired rounds, which alternate in their order. Raises LiveCutsFailed."""
    programs: dict[str, Callable[[Path, list[str], float], float]] = {"bank, rounds": _bank}
    missing = {}
    if find_spec("uvicorn") is None:
        missing["uvicorn"] = "not installed: uvicorn"
    else:
        programs["uvicorn, requests"] = _uvicorn
    costs = LiveCutCosts({}, {}, {}, missing)
    for name, measure in programs.items():
        without, with_cuts = costs.without.setdefault(name, []), costs.with_cuts.setdefault(name, [])
        costs.cuts[name] = 0
        for number in range(max(runs, 1)):
            for has_cuts in (False, True) if number % 2 else (True, False):
                with tempfile.TemporaryDirectory(prefix="replaydbg-bench-") as directory:
                    found = measure(Path(directory), [EVERY] if has_cuts else [], timeout)
                    costs.cuts[name] += len(completed(Path(directory) / "made.rdbgs").cuts)
                    (with_cuts if has_cuts else without).append(found)
        if not costs.cuts[name]:
            raise LiveCutsFailed(f"{name}: no live cut was taken")
    if not missing:
        with tempfile.TemporaryDirectory(prefix="replaydbg-bench-") as directory:
            try:
                cost = cost_of_cuts(Path(directory), timeout)
            except ServiceFailed as error:
                raise LiveCutsFailed(str(error)) from None
        if cost.cuts < PAIRS:
            raise LiveCutsFailed(f"uvicorn: only {cost.cuts} live cuts were taken in {PAIRS} blocks")
        costs = replace(costs, cpu=cost)
    return costs


def _bank(directory: Path, options: list[str], timeout: float) -> float:
    """Return the rounds of the bank in a second."""
    (directory / "timed.py").write_text(_TIMED_BANK)
    command = tool.record(sys.executable, directory / "made", ["timed.py"], options=(*CHILDREN, *options))
    done = run(command, cwd=directory, env=environment(), timeout=timeout)
    if done.status != 0:
        raise LiveCutsFailed(done.stderr.decode(errors="replace"))
    return float(done.stdout)


def _uvicorn(directory: Path, options: list[str], timeout: float) -> float:
    """Return the requests in a second that two workers answer."""
    with recorded_service(directory, options, timeout) as port, ThreadPoolExecutor(CLIENTS) as pool:
        began = time.perf_counter()
        answers = sum(pool.map(ask, [port] * CLIENTS, [REQUESTS] * CLIENTS))
        return answers / (time.perf_counter() - began)
