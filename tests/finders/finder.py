"""Look for the bug of one program in three ways, and measure each until the first failure."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.harness.process import Finished, run
from tests.harness.surroundings import without_steering

TIMEOUT = 600.0
"""Seconds for one command."""

HANGS = 20.0
"""Seconds after which a plain run counts as failed: a deadlock."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to look for the bug."""

    runs: int
    """Runs, or futures, up to the first that failed; if none did, all."""
    seconds: float
    """Until the end of that one; of futures, with the recording of the run that passed."""
    is_found: bool

    def __str__(self) -> str:
        return f"{self.runs}, {self.seconds:.1f} s" if self.is_found else f"not in {self.runs}, {self.seconds:.0f} s"


@dataclass(frozen=True, slots=True)
class Found:
    """What came of one program."""

    program: str
    plain: Way
    hunt: Way
    futures: Way
    deviations: int
    """How many deviations from the usual schedule are needed; 0: it was not shrunk."""
    is_confirmed: bool
    """Whether the future fails with these, and passes without any one of them."""
    replays: int
    """Replays of failing futures that were made."""
    equal: int
    """Those that ended as the future did."""


def find(program: Path, ground: Path, *, runs: int, replays: int) -> Found:
    """Look for the bug of `program` in directory `ground`, with at most `runs` runs or futures in each way.

    Failing futures are replayed `replays` times. Raises RuntimeError if the program cannot be recorded while it passes.
    """
    text = ground / "program.py"
    text.write_text(program.read_text(encoding="utf-8"), encoding="utf-8")
    plain = _repeat(ground, runs)
    hunt = _hunt(ground, runs)
    begin = time.monotonic()
    _record_passing(ground)
    recorded = time.monotonic() - begin
    found = _replaydbg(ground, "futures", "one.rdbg", "-n", str(runs), "--shrink", "-o", "kept", "--json", "-q")
    answer = json.loads(found.stdout)
    failing = [group for group in answer["groups"] if group["verdict"] == "failed"]
    first = min((seed for group in failing for seed in group["seeds"]), default=runs)
    share = answer["seconds"] * first / answer["futures"]
    deciding = [each for each in answer["deciding"] if each["switches"]]
    made = [(name, group["status"]) for group in failing for name in group["recordings"][:3]]
    equal = sum(_replays_equal(ground, name, status, replays) for name, status in made)
    return Found(
        program.stem,
        plain,
        hunt,
        Way(first, recorded + answer["replay_seconds"] + share, bool(failing)),
        min((len(each["switches"]) for each in deciding), default=0),
        bool(deciding) and all(each["is_confirmed"] for each in deciding),
        replays * len(made),
        equal,
    )


def _environment(ground: Path) -> dict[str, str]:
    return without_steering(os.environ) | {"REPLAYDBG_STORE": str(ground / "store")}


def _replaydbg(ground: Path, *words: str) -> Finished:
    command = [sys.executable, "-m", "replaydbg", *words]
    return run(command, cwd=ground, env=_environment(ground), timeout=TIMEOUT)


def _repeat(ground: Path, runs: int) -> Way:
    begin = time.monotonic()
    for number in range(1, runs + 1):
        finished = run([sys.executable, "program.py"], cwd=ground, env=_environment(ground), timeout=HANGS)
        if finished.status != 0:
            return Way(number, time.monotonic() - begin, is_found=True)
    return Way(runs, time.monotonic() - begin, is_found=False)


def _hunt(ground: Path, runs: int) -> Way:
    begin = time.monotonic()
    words = ["--until", "fail", "-n", str(runs), "--timeout", str(HANGS), "-o", "hunted", "--json", "-q"]
    finished = _replaydbg(ground, "hunt", "--chaos", *words, "program.py")
    answer = json.loads(finished.stdout)
    answer = answer.get("error", answer)  # where no run has failed
    return Way(answer["runs"], time.monotonic() - begin, is_found=answer["failures"] > 0)


def _record_passing(ground: Path) -> None:
    for _ in range(20):
        finished = _replaydbg(ground, "record", "-q", "-o", "one.rdbg", "program.py")
        if finished.status == 0:
            return
        _replaydbg(ground, "rm", "-y", "one.rdbg")
    raise RuntimeError(f"no recorded run passed: {finished.stderr.decode(errors='replace')}")


def _replays_equal(ground: Path, name: str, status: int | None, times: int) -> int:
    return sum(_replaydbg(ground, "replay", name).status == status for _ in range(times))
