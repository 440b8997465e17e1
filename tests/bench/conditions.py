"""The cost of a condition at each passage of a line: in the process that passes it, and by a copy of it."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from replaydbg.debugger import Session
from replaydbg.engine.protocol import Break, RunOrder
from tests.bench.workloads import environment
from tests.harness import tool
from tests.harness.process import run

NAME = "conditions"
PASSAGES = 300_000
TARGET = 2.0
"""Microseconds for each passage."""

# Copies of a process for so many passages are enough to measure one.
COPIES = 200

PROGRAM = f"""\
def each(number, table):
    rest = number * 3 % 7
    table[rest] = number
    return rest

table = {{}}
print(sum(each(number, table) for number in range({PASSAGES})))
"""


class ConditionsFailed(Exception):
    """The program could not be recorded."""


@dataclass(frozen=True, slots=True)
class ConditionCosts:
    """Microseconds of wall time for each passage, medians; the run with a breakpoint that only counts is subtracted."""

    passages: int
    # A condition that is never true; one that is always true, with a value that is logged.
    never: float
    logged: float
    # One that calls a function of the program, which a copy is asked.
    copied: float
    target: float = TARGET

    def as_text(self) -> str:
        """Return it as lines for people."""
        verdict = "met" if self.never <= self.target else "missed"
        return (
            f"conditions, {self.passages:,} passages of a line: {self.never:.2f} us each (target {self.target:g}: "
            f"{verdict}); with a value logged {self.logged:.2f} us; asked of a copy {self.copied:,.0f} us"
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as data."""
        return asdict(self)


def measure_conditions(runs: int, timeout: float) -> ConditionCosts:
    """Record the program and measure `runs` times. Raises ConditionsFailed."""
    with tempfile.TemporaryDirectory(prefix="replaydbg-bench-") as name:
        program, path = Path(name) / "passes.py", Path(name) / "passes.rdbg"
        program.write_text(PROGRAM, encoding="utf-8")
        done = run(
            tool.record(sys.executable, path, [str(program)]), cwd=Path(name), env=environment(), timeout=timeout
        )
        if done.status != 0:
            raise ConditionsFailed(f"recording ended with {done.status}")
        with Session(path) as session:
            file = session.sources.file_named(program.name)

            def counted() -> None:
                """Run as long, with a breakpoint that only counts."""
                total = session.index.total
                inner = [count for count in session.travel.timeline.counts() if 1 < count < total]
                for begin, end in zip([1, *inner], [*inner, total], strict=True):
                    session.travel.scan(begin, end, RunOrder(breaks=(Break(file, 3, stop_at=0),)))

            def logged(condition: str, expression: str, most: int = PASSAGES) -> Callable[[], None]:
                return lambda: _exhaust(islice(session.run.log(file, 3, expression, condition=condition), most))

            ways = {
                "counted": counted,
                "never": logged("number == -1", "0"),
                "logged": logged("number >= 0", "rest, number"),
                "copied": logged("each(number, {}) >= 0", "0", COPIES),
            }
            rounds = [{way: _seconds(way_run) for way, way_run in ways.items()} for _ in range(runs)]
    in_process = {way: median(each[way] - each["counted"] for each in rounds) for way in ("never", "logged")}
    return ConditionCosts(
        PASSAGES,
        in_process["never"] / PASSAGES * 1e6,
        in_process["logged"] / PASSAGES * 1e6,
        median(each["copied"] for each in rounds) / COPIES * 1e6,
    )


def _exhaust(found: Any) -> None:
    for _ in found:
        pass


def _seconds(run_it: Callable[[], None]) -> float:
    began = time.perf_counter()
    run_it()
    return time.perf_counter() - began
