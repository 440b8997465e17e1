"""The cost of finding the line after which a run was wrong: with a quick predicate, and with one that takes 100 ms."""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from replaydbg.debugger import Session
from replaydbg.debugger.bisection import predicates
from replaydbg.debugger.bisection.bisect_results import Bisected
from replaydbg.debugger.bisection.predicates import Predicate
from tests.bench.workloads import environment
from tests.harness import tool
from tests.harness.process import run

NAME = "bisect"
LINES = 1_000_000
SECONDS_A_LINE = 0.2e-6
CHECKPOINTS = 200
QUESTION = 0.1
"""Seconds."""
PROGRAM = Path(__file__).parent / "programs" / "goes_wrong.py"
WRONG = "state['lost'] > 0"

# A predicate that computes for a fixed time, whatever the load of the machine.
SLOW = """
from time import process_time

def is_wrong(names):
    total = 0
    for number in range(ROUNDS):
        total += number
    return names["state"]["lost"] > 0
"""


class BisectFailed(Exception):
    """The bisection failed, so its time is meaningless."""


@dataclass(frozen=True, slots=True)
class BisectCosts:
    """Wall seconds."""

    lines: int
    opening: float
    quick: float
    """From the predicate to the line."""
    every_line: float
    """The same, with the predicate evaluated at every line of the run in order."""
    checkpoints: int
    slow_question: float
    """Seconds of one look with the slow predicate."""
    slow_looks: int
    """Number of looks at checkpoints, including those that only check."""
    slow: float
    """From the slow predicate to the two checkpoints."""
    slow_line: float
    """From it to the line."""

    def as_text(self) -> str:
        """Return it as lines for people."""
        return "\n".join(
            (
                f"bisect: {self.lines:,} lines; opening {self.opening:.2f} s; the line {self.quick:.2f} s (target 5), "
                f"with a look at every line of the run {self.every_line:.2f} s",
                f"  {self.checkpoints} checkpoints and a question of {1000 * self.slow_question:.0f} ms: "
                f"{self.slow_looks} looks, the checkpoint {self.slow:.2f} s (target 2), "
                f"the line {self.slow_line:.2f} s",
            )
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as data."""
        return asdict(self)


def measure_bisections(
    timeout: float, *, lines: int = LINES, checkpoints: int = CHECKPOINTS, question: float = QUESTION
) -> BisectCosts:
    """Measure it, with a predicate that computes for `question` seconds. Raises BisectFailed."""
    with tempfile.TemporaryDirectory(prefix="replaydbg-bench-") as name:
        directory = Path(name)
        recording = directory / "wrong.rdbg"
        command = tool.record(sys.executable, recording, (str(PROGRAM), str(lines // 5)))
        recorded = run(command, cwd=directory, env=environment(), timeout=timeout)
        if recorded.status != 0:
            raise BisectFailed(recorded.stderr.decode(errors="replace"))
        began = time.perf_counter()
        with Session(recording) as session:
            opening = time.perf_counter() - began
            short = predicates.bad_if(WRONG)
            quick = _line(session, short)
            every_line = _line(session, short, linear=True)
            total = session.index.total
        slow = _slow_question(directory, question)
        with Session(recording, spacing=total * SECONDS_A_LINE / checkpoints) as session:
            return BisectCosts(total, opening, quick, every_line, *_slowly(session, slow))


def _slowly(session: Session, question: Predicate) -> tuple[int, float, int, float, float]:
    began = time.perf_counter()
    done: list[float] = []
    found = session.run.bisect(question, report=lambda probe: done.append(time.perf_counter() - began))
    whole = time.perf_counter() - began
    _must_be_right(found)
    places = found.looks[: _at_places(found)]
    one = min(each.seconds for each in places)
    return found.places, one, len(places), done[len(places) - 1], whole


def _at_places(found: Bisected) -> int:
    """Return how many looks were at checkpoints: those at lines follow the checks."""
    checks = [at for at, each in enumerate(found.looks) if each.is_check]
    return checks[-1] + 1 if checks else len(found.looks)


def _line(session: Session, question: Predicate, *, linear: bool = False) -> float:
    began = time.perf_counter()
    found = session.run.bisect(question, linear=linear)
    taken = time.perf_counter() - began
    _must_be_right(found)
    return taken


def _must_be_right(found: Bisected) -> None:
    if found.culprit is None or '["lost"] += 1' not in found.culprit.source:
        raise BisectFailed(f"another line was found: {found.culprit}")


def _slow_question(directory: Path, seconds: float) -> Predicate:
    began = time.perf_counter()
    sum(number for number in range(1_000_000))
    rounds = round(seconds / (time.perf_counter() - began) * 1_000_000)
    file = directory / "slow.py"
    file.write_text(SLOW.replace("ROUNDS", str(rounds)))
    return predicates.function(f"{file}:is_wrong")
