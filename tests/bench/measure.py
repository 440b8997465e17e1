"""Run a workload plain, recorded and replayed in turn, and keep every figure."""

import re
import sys
import tempfile
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tests.bench.workloads import Workload, environment
from tests.harness import tool
from tests.harness.figures import Figures, read_figures
from tests.harness.process import Finished, run


class Modes(Enum):
    """The modes that are run in each round."""

    ALL = "plain, recorded and replayed in turn"
    PLAIN = "plain alone, to check the workloads"


@dataclass(frozen=True, slots=True)
class Round:
    """One turn: plain, recorded, replayed, directly after each other. Seconds; None where it was not run."""

    plain_wall: float
    # For the command and its children.
    plain_cpu: float
    # The whole command: launcher, program and sealing.
    recorded_wall: float | None = None
    recorded_cpu: float | None = None
    # The recorded program's own process and its children, without launcher and sealing.
    program_cpu: float | None = None
    replayed_wall: float | None = None
    replayed_cpu: float | None = None
    # Bytes of memory of the largest process.
    plain_peak: int = 0
    # Microseconds per message, as measured and printed by the program itself; None: it prints no such figure.
    plain_message: float | None = None
    recorded_peak: int | None = None
    recorded_message: float | None = None
    replayed_peak: int | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """A workload, its rounds, and the recording of the last one."""

    workload: Workload
    rounds: tuple[Round, ...]
    figures: Figures | None
    # Why it could not be measured; the rounds before are kept.
    failure: str | None
    # Whether the environment has what it needs. If not, the row says so, and nothing has failed.
    is_possible: bool = True


class _Failed(Exception):
    """A command failed, so its time is meaningless."""


def measure(workload: Workload, *, runs: int, modes: Modes, timeout: float) -> Measurement:
    """Measure `workload` in `runs` rounds; `timeout` is in seconds for each command."""
    if missing := workload.missing:
        return Measurement(workload, (), None, f"not installed: {', '.join(missing)}", is_possible=False)
    rounds: list[Round] = []
    figures: Figures | None = None
    with tempfile.TemporaryDirectory(prefix="replaydbg-bench-") as name:
        directory = Path(name)
        inputs = directory / "inputs"
        inputs.mkdir()
        workload.prepare(inputs)
        try:
            # Once without measuring: byte code and the page cache are the same for all rounds.
            _run_well([sys.executable, *workload.argv], workload, inputs, timeout)
            for _ in range(runs):
                turn, figures = _round(workload, directory, modes, timeout)
                rounds.append(turn)
        except _Failed as failure:
            return Measurement(workload, tuple(rounds), figures, str(failure))
    return Measurement(workload, tuple(rounds), figures, None)


def _round(workload: Workload, directory: Path, modes: Modes, timeout: float) -> tuple[Round, Figures | None]:
    inputs = directory / "inputs"
    plain = _run_well([sys.executable, *workload.argv], workload, inputs, timeout)
    if modes is Modes.PLAIN:
        return Round(plain.wall, plain.cpu, plain_peak=plain.peak, plain_message=_message(plain)), None
    recording = directory / "run.rdbg"
    recorded = _run_well(tool.record(sys.executable, recording, workload.argv), workload, inputs, timeout)
    figures = read_figures(recording)
    if figures.reason is not None:
        raise _Failed(f"the recording ends early: {figures.reason}")
    replayed = _run_well(tool.replay(sys.executable, recording), workload, inputs, timeout)
    if (replayed.stdout, replayed.stderr) != (recorded.stdout, recorded.stderr):
        raise _Failed("the replay's output is not that of the recording")
    recording.unlink()
    turn = Round(
        plain_wall=plain.wall,
        plain_cpu=plain.cpu,
        plain_peak=plain.peak,
        plain_message=_message(plain),
        recorded_wall=recorded.wall,
        recorded_cpu=recorded.cpu,
        program_cpu=figures.cpu_seconds,
        replayed_wall=replayed.wall,
        replayed_cpu=replayed.cpu,
        recorded_peak=recorded.peak,
        recorded_message=_message(recorded),
        replayed_peak=replayed.peak,
    )
    return turn, figures


def _run_well(argv: list[str], workload: Workload, inputs: Path, timeout: float) -> Finished:
    workload.clean(inputs)
    finished = run(argv, cwd=inputs, env=environment(), timeout=timeout)
    if finished.status != 0:
        last = finished.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise _Failed(f"{_which(argv)}: {finished.ending}: {' '.join(last)}")
    return finished


def _message(finished: Finished) -> float | None:
    found = re.search(rb"^([0-9.]+) us a message$", finished.stdout, re.MULTILINE)
    return float(found[1]) if found else None


def _which(argv: list[str]) -> str:
    return argv[3] if argv[1:3] == ["-m", "replaydbg"] else "plain"
