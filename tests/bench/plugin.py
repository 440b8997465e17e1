"""The costs of the pytest plugin: tests that pass, a test that fails, and the examination of its recording."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from replaydbg.store.directory import index_path
from tests.bench.report import verdict
from tests.bench.workloads import environment
from tests.harness.process import run

NAME = "plugin"
TESTS = 500
# Maximum ratio of CPU time, with the plugin to without.
TARGET = 1.15
# Milliseconds of CPU time and kB for a trivial failing test, and seconds for the examination of one.
FAILURE_TARGET_MS = 80.0
FAILURE_TARGET_KB = 50.0
EXAMINATION_TARGET = 0.5

_SUITE = Path(__file__).parent / "programs" / "suite.py.in"
_TRIVIAL = f"""\
import pytest

@pytest.mark.parametrize("number", range({TESTS}))
def test_trivial(number):
    assert number >= 0
"""
_FAILING = """\

def test_last():
    values = [1, 2, 3]
    total = sum(values)
    assert total == 7
"""
# A second of work on 3.11, before the assertion.
_WORKING = """\

def test_last():
    total = 0
    for number in range(10_000_000):
        total += number % 7
    assert total == 7
"""


class PluginFailed(Exception):
    """A session ended in another way, so its time is meaningless."""


@dataclass(frozen=True, slots=True)
class PluginCosts:
    """Medians of CPU time, children included."""

    tests: int
    # Seconds of a session of passing tests, and the ratio with `--replaydbg=retain-on-failure`.
    plain: float
    ratio: float
    # A session of one failing test, without its examination: milliseconds more than plain.
    failure_ms: float
    # Bytes of its recording and of the index beside it; and of the blocks that recordings have in common.
    recording: int
    index: int
    blocks: int
    # By what precedes the failure: seconds that the examination of the recording takes.
    examinations: dict[str, float]
    target: float = TARGET
    failure_target_ms: float = FAILURE_TARGET_MS
    failure_target_kb: float = FAILURE_TARGET_KB
    examination_target: float = EXAMINATION_TARGET

    def as_text(self) -> str:
        """Return it as lines for people."""
        stored = (self.recording + self.index) / 1000
        lines = [
            f"plugin: {self.tests} trivial tests, plain {self.plain:.3f} s; retain-on-failure {self.ratio:.2f} times "
            f"(target {self.target:.2f}: {verdict(self.ratio, self.target)})",
            f"  a trivial failing test: {self.failure_ms:.0f} ms more (target {self.failure_target_ms:.0f}: "
            f"{verdict(self.failure_ms, self.failure_target_ms)}); recording {self.recording / 1000:.0f} kB and index "
            f"{self.index / 1000:.0f} kB (target {self.failure_target_kb:.0f}: "
            f"{verdict(stored, self.failure_target_kb)}), common blocks {self.blocks / 1000:.0f} kB",
        ]
        for kind, seconds in self.examinations.items():
            lines.append(
                f"  examination of a failing test, {kind}: {seconds:.2f} s (target {self.examination_target:.2f}: "
                f"{verdict(seconds, self.examination_target)})"
            )
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return it as data."""
        return asdict(self)


def measure_plugin(runs: int, timeout: float) -> PluginCosts:
    """Run every kind of session `runs` times. Raises PluginFailed."""
    with tempfile.TemporaryDirectory(prefix="replaydbg-bench-") as name:
        sessions = _Sessions(Path(name), timeout)
        trivial = sessions.add("trivial", _TRIVIAL, fails=False)
        failing = sessions.add("failing", _FAILING, fails=True)
        plain, ratios = [], []
        for _ in range(runs):
            plain.append(trivial(_PLAIN))
            ratios.append(trivial(_RECORDED) / plain[-1])
        failures = [failing([*_RECORDED, "--replaydbg-wait=0"]) - failing(_PLAIN) for _ in range(runs)]
        failing(_EXAMINED)
        (recording,) = sessions.results("failing").glob("*test_last*/rec.rdbg")
        examined = {
            "the first of its session": failing,
            f"after {TESTS} trivial ones": sessions.add("after-trivial", _TRIVIAL + _FAILING, fails=True),
            "after 300 of a small project": sessions.add("after-others", _SUITE.read_text() + _FAILING, fails=True),
            "that computes for a second": sessions.add("working", _WORKING, fails=True),
        }
        return PluginCosts(
            tests=TESTS,
            plain=median(plain),
            ratio=median(ratios),
            failure_ms=1000 * median(failures),
            recording=recording.stat().st_size,
            index=index_path(recording).stat().st_size if index_path(recording).exists() else 0,
            blocks=sum(each.stat().st_size for each in sessions.results("failing").glob("replaydbg-blocks/*")),
            # A session that does not wait examines nothing; the rest of it is the same.
            examinations={
                kind: median(session(_EXAMINED) - session([*_RECORDED, "--replaydbg-wait=0"]) for _ in range(runs))
                for kind, session in examined.items()
            },
        )


_PLAIN = ["-p", "no:replaydbg"]
_RECORDED = ["-p", "replaydbg", "--replaydbg=retain-on-failure"]
_EXAMINED = [*_RECORDED, "--replaydbg-wait=120"]


class _Sessions:
    """Folders with one file of tests each."""

    def __init__(self, folder: Path, timeout: float) -> None:
        self._folder = folder
        self._timeout = timeout

    def add(self, name: str, tests: str, *, fails: bool) -> Callable[[Sequence[str]], float]:
        """Return a function that runs the tests with further options of pytest and returns CPU seconds."""
        folder = self._folder / name
        folder.mkdir()
        # An ini file of its own, or pytest uses the next one above the temporary directory.
        (folder / "pytest.ini").write_text("[pytest]\n")
        (folder / f"test_{name.replace('-', '_')}.py").write_text(tests)

        def session(options: Sequence[str]) -> float:
            shutil.rmtree(self.results(name), ignore_errors=True)
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
            done = run(command, cwd=folder, env=environment(), timeout=self._timeout)
            if done.status != int(fails):
                raise PluginFailed(f"{name}: {done.ending}: {done.stdout.decode(errors='replace')[-500:]}")
            return done.cpu

        session(_PLAIN)  # once without measuring: pytest compiles the file
        return session

    def results(self, name: str) -> Path:
        """Return the folder of the recordings."""
        return self._folder / name / "test-results"
