"""The racy programs of `fixtures/races` under many seeds: is each replay equal, and in how many is the bug met?"""

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.harness import tool
from tests.harness.process import run
from tests.harness.surroundings import without_steering
from tests.stress.repeat import chaos_options, last_line

RACES = tuple(sorted((Path(__file__).parents[2] / "fixtures" / "races").glob("*.py")))
REPLAYS = 3
# What a program ends with when its bug was met.
_BUG = 1
# What it prints then, unless it prints `BUG`.
_TRACEBACK = b"Traceback (most recent call last):"


@dataclass(frozen=True, slots=True)
class Raced:
    """The result of one racy program."""

    name: str
    seeds: int
    # Seeds whose recording was whole and whose replays were all equal.
    equal: int
    # Seeds with which the bug was met.
    found: tuple[int, ...]
    # The first seed whose run or replay was not as it must be, and how; None: there is none.
    failure: str | None
    kept: Path | None

    @property
    def is_right(self) -> bool:
        """Whether all replays are equal and the bug was met at least once."""
        return self.equal == self.seeds and bool(self.found)


@dataclass(frozen=True, slots=True)
class _Run:
    seed: int
    is_bug: bool
    failure: str | None
    kept: Path | None


def race(program: Path, seeds: Sequence[int], *, jobs: int, timeout: float, keep: Path) -> Raced:
    """Records `program` once with each seed and replays each recording three times."""
    with ThreadPoolExecutor(jobs) as pool:
        runs = list(pool.map(lambda seed: _run(program, seed, timeout, keep), seeds))
    failed = [each for each in runs if each.failure is not None]
    return Raced(
        name=program.stem,
        seeds=len(runs),
        equal=len(runs) - len(failed),
        found=tuple(each.seed for each in runs if each.is_bug),
        failure=f"seed {failed[0].seed}: {failed[0].failure}" if failed else None,
        kept=failed[0].kept if failed else None,
    )


def _run(program: Path, seed: int, timeout: float, keep: Path) -> _Run:
    environment = without_steering(os.environ)
    with tempfile.TemporaryDirectory(prefix="replaydbg-stress-") as name:
        base = Path(name)
        recording = base / f"{program.stem}-{seed}.rdbg"
        command = tool.record(sys.executable, recording, [str(program)], chaos_options(seed))
        recorded = run(command, cwd=base, env=environment, timeout=timeout)
        failure = None
        is_bug = b"BUG" in recorded.stdout or recorded.stderr.startswith(_TRACEBACK)
        if recorded.status not in (0, _BUG) or (recorded.status == _BUG) != is_bug:
            failure = f"{recorded.ending} while recording: {last_line(recorded)}"
        for number in range(1, REPLAYS + 1):
            if failure is not None:
                break
            replayed = run(tool.replay(sys.executable, recording), cwd=base, env=environment, timeout=timeout)
            if (replayed.status, replayed.stdout) != (recorded.status, recorded.stdout):
                failure = f"replay {number}: {replayed.ending}: {last_line(replayed)}"
        kept = None
        if failure is not None:
            kept = keep / recording.name
            keep.mkdir(parents=True, exist_ok=True)
            if recording.exists():
                shutil.copy(recording, kept)
        return _Run(seed, recorded.status == _BUG and is_bug, failure, kept)
