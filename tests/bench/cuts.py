"""The cost of cuts: of a group with a million transfers (made up), and of an expression in ten thousand of them."""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from replaydbg.distributed.cuts import finder_of
from replaydbg.distributed.matching.matching import GroupMatching
from tests.bench.matching import TRANSFERS, connections
from tests.bench.report import verdict
from tests.bench.workloads import environment
from tests.harness import tool
from tests.harness.children import CHILDREN, completed
from tests.harness.process import Finished, run

NAME = "cuts"
# Milliseconds of CPU time, and seconds of wall time.
CUT_TARGET, CUTS_TARGET = 1.0, 30.0
CUTS = 200
ROOT = Path(__file__).parents[2]
BANK = ROOT / "fixtures" / "cuts" / "bank.py"
# They make more than ten thousand quiet cuts.
BANK_ROUNDS, RING_ROUNDS = 18_000, 2_510
_AMOUNTS = "0 if b'end' in m else sum(map(int, m.split()))"
# Four processes that pass a token round, and compute a million lines each meanwhile.
_RING = f"""import os
pipes = [os.pipe() for _ in range(4)]
number = next((number for number in range(1, 4) if not os.fork()), 0)
reading, writing = pipes[number][0], pipes[(number + 1) % 4][1]
turns = total = 0
if number == 0:
    os.write(writing, b"token")
for turns in range(1, {RING_ROUNDS} + 1):
    os.read(reading, 5)
    for step in range(200):
        total += step
    if number or turns < {RING_ROUNDS}:
        os.write(writing, b"token")
if number == 0:
    for _ in range(3):
        os.wait()
"""


class CutsFailed(Exception):
    """A command failed, or an invariant did not hold, so its time has no meaning."""


@dataclass(frozen=True, slots=True)
class EvaluatedCuts:
    """An invariant in all quiet cuts of a group."""

    cuts: int
    undecided: int
    # Events of all processes.
    events: int
    # Wall seconds of the first command, which makes the indexes, and of a later one; CPU seconds of the later one.
    first: float
    again: float
    cpu: float


@dataclass(frozen=True, slots=True)
class CutCosts:
    """Medians."""

    transfers: int
    # CPU seconds until the tables exist: matching included, and without.
    matching: float
    tables: float
    # CPU milliseconds of a cut: the median and the 95th percentile.
    cut_p50: float
    cut_p95: float
    ring: EvaluatedCuts
    bank: EvaluatedCuts

    def as_text(self) -> str:
        """Return it as lines for people."""
        lines = [
            f"a cut of {self.transfers:,} transfers (target {CUT_TARGET:g} ms CPU)",
            f"  tables          {self.matching + self.tables:.2f} s CPU, of it matching {self.matching:.2f} s",
            f"  a cut           {self.cut_p50:.3f} ms, p95 {self.cut_p95:.3f} ms ({verdict(self.cut_p95, CUT_TARGET)})",
            f"an expression in all quiet cuts (target {CUTS_TARGET:g} s for ten thousand, with indexes)",
        ]
        for name, found in (("4 x 1 M lines", self.ring), ("bank", self.bank)):
            scaled = found.again * 10_000 / found.cuts
            lines.append(
                f"  {name:<15} {found.cuts:,} cuts, {found.undecided} undecided: {found.again:.1f} s, "
                f"CPU {found.cpu:.1f} s; first time {found.first:.1f} s; "
                f"ten thousand: {scaled:.1f} s ({verdict(scaled, CUTS_TARGET)})"
            )
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return it as data."""
        return asdict(self)


def measure_cuts(runs: int, timeout: float) -> CutCosts:
    """Measure each, the cuts of made-up transfers `runs` times. Raises CutsFailed."""
    found = [_made_up(timeout) for _ in range(max(runs, 1))]
    middle = {name: median(each[name] for each in found) for name in found[0]}
    with tempfile.TemporaryDirectory(prefix="replaydbg-bench-") as name:
        ring = Path(name) / "ring.py"
        ring.write_text(_RING)
        return CutCosts(
            TRANSFERS,
            middle["matching"],
            middle["tables"],
            middle["cut_p50"],
            middle["cut_p95"],
            _evaluated(Path(name), [str(ring)], ["--local", "turns", "--holds", "total >= 0"], timeout),
            _evaluated(
                Path(name),
                [str(BANK), str(BANK_ROUNDS)],
                ["--local", "bank.balance", "--channel", _AMOUNTS, "--holds", "total == 3000"],
                timeout,
            ),
        )


def _evaluated(directory: Path, program: list[str], words: list[str], timeout: float) -> EvaluatedCuts:
    """Record a program, and evaluate an invariant that always holds in all of its quiet cuts."""
    made = directory / Path(program[0]).stem
    _run(tool.record(sys.executable, made, program, options=CHILDREN), directory, timeout)
    group = completed(made.with_suffix(".rdbgs"))
    command = [sys.executable, "-m", "replaydbg", "bisect", "cuts", "-q", "--json", str(made), *words]
    first = _run(command, directory, timeout, status=3)
    again = _run([*command, "--all"], directory, timeout, status=3)
    verdicts = [each["verdict"] for each in json.loads(again.stdout)["evaluated"]]
    listed = _run([sys.executable, "-m", "replaydbg", "ps", "--json", str(made)], directory, timeout)
    events = sum(each["events"] or 0 for each in json.loads(listed.stdout)["processes"])
    assert len(group.processes) > 1
    return EvaluatedCuts(len(verdicts), verdicts.count("undecided"), events, first.wall, again.wall, again.cpu)


def _made_up(timeout: float) -> dict[str, float]:
    done = _run([sys.executable, "-m", "tests.bench.cuts", str(TRANSFERS)], ROOT, timeout)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _run(command: list[str], directory: Path, timeout: float, *, status: int = 0) -> Finished:
    done = run(command, cwd=directory, env=environment(), timeout=timeout)
    if done.status != status:
        reason = done.stderr.decode(errors="replace") or done.stdout.decode(errors="replace")[-500:]
        raise CutsFailed(f"{' '.join(command[2:6])} ended with {done.status}: {reason}")
    return done


def main(count: int) -> None:
    """Make the tables of one group, find cuts at random positions, and print the cost."""
    chance = random.Random(1)
    processes = connections(count, chance)
    members = [each.member(number)._replace(events=len(each.flags)) for number, each in enumerate(processes, 1)]
    began = time.process_time()
    group = GroupMatching(members)
    for channel in group.channels:
        group.match(channel)
    matched = time.process_time()
    finder = finder_of(group)
    tables = time.process_time()
    times = []
    for _ in range(CUTS):
        wanted = {process: chance.randint(1, last) for process, last in finder.last.items()}
        start = time.process_time()
        finder.latest(wanted)
        times.append(1000 * (time.process_time() - start))
    times.sort()
    facts = {"matching": matched - began, "tables": tables - matched}
    facts |= {"cut_p50": median(times), "cut_p95": times[int(0.95 * CUTS)]}
    print(json.dumps(facts))


if __name__ == "__main__":
    main(int(sys.argv[1]))
