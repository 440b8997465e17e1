"""Measure the step clock, a replay that counts lines, against the plain program; and the cost of ticks."""

import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from replaydbg.replay import replay, steps
from tests.bench.workloads import environment
from tests.harness import tool

_PROGRAMS = Path(__file__).parent / "programs"
# Maximum slowdown of a replay under the clock against plain.
TARGET = 3.6 if sys.version_info < (3, 12) else 1.9


@dataclass(frozen=True, slots=True)
class StepCosts:
    """Medians of ratios to plain, with start-up subtracted on both sides."""

    # Lines that the program runs.
    lines: int
    # "replay", "clock", "hits", "activations", "ticks" (recorded with ticks) to their ratios.
    ratios: dict[str, float]
    # CPU seconds of the program alone.
    plain: float
    target: float = TARGET

    def as_text(self) -> str:
        """Return it in one line for people."""
        each = ", ".join(f"{name} {ratio:.2f}" for name, ratio in self.ratios.items())
        verdict = "met" if self.ratios["clock"] <= self.target else "missed"
        return (
            f"step clock: {self.lines:,} lines, plain {self.plain:.3f} s; times plain: {each}; "
            f"target for the clock at most {self.target:.1f}: {verdict}"
        )


def measure_steps(runs: int) -> StepCosts:
    """Run the program in `runs` rounds in every way, directly after each other."""
    with tempfile.TemporaryDirectory(prefix="replaydbg-bench-") as name:
        recording, empty = (_record(_PROGRAMS / f"{program}.py", Path(name)) for program in ("lines", "empty"))
        ways = _ways(recording, Path(name), _PROGRAMS / "lines.py")
        startup = {
            way: median(_cpu(run) for _ in range(3))
            for way, run in _ways(empty, Path(name), _PROGRAMS / "empty.py").items()
        }
        rounds = [{way: _cpu(run) - startup[way] for way, run in ways.items()} for _ in range(runs)]
        lines = steps.count(recording).total
    ratios = {way: median(turn[way] / turn["plain"] for turn in rounds) for way in ways if way != "plain"}
    return StepCosts(lines, ratios, median(turn["plain"] for turn in rounds))


def _ways(recording: Path, directory: Path, program: Path) -> dict[str, Callable[[], object]]:
    ticking = environment() | {"REPLAYDBG_TEST_TICKS": "1000000000", "REPLAYDBG_TEST_TICKS_FD": "2"}

    def with_ticks() -> None:
        path = directory / "ticks.rdbg"
        path.unlink(missing_ok=True)
        _run(tool.record(sys.executable, path, [str(program)]), ticking)

    return {
        "plain": lambda: _run([sys.executable, str(program)], environment()),
        "replay": lambda: replay(recording),
        "clock": lambda: steps.count(recording),
        "hits": lambda: steps.count(recording, hits=True),
        "activations": lambda: steps.count(recording, activations=True),
        "ticks": with_ticks,
    }


def _record(program: Path, directory: Path) -> Path:
    path = directory / f"{program.stem}.rdbg"
    _run(tool.record(sys.executable, path, [str(program)]), environment())
    return path


def _run(command: list[str], env: dict[str, str]) -> None:
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _cpu(run: Callable[[], object]) -> float:
    """Return the CPU seconds of the children of `run`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
