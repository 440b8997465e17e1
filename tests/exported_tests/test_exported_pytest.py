"""A recording of a failing test of pytest becomes a test that runs that test with the recorded inputs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.plugin_runs import run_pytest
from tests.harness.replays import Outcome, passed_on, run

pytestmark = pytest.mark.slow
SOURCE = """
    import os, random, time
    import pytest

    @pytest.fixture
    def limit(tmp_path):
        (tmp_path / "own.txt").write_text("own")
        return float(open("limit.txt").read()) + len((tmp_path / "own.txt").read_text())

    def test_before():
        assert [random.random() for _ in range(5)]

    class TestOne:
        @pytest.mark.parametrize("factor", [1, 1000])
        def test_values(self, limit, factor):
            found = random.random(), time.time(), os.environ["PLACE"]
            if factor == 1:
                return
            assert found == limit, f"{found} {limit}"
"""


def export(folder: Path, recording: Path, *words: str) -> Outcome:
    command = [sys.executable, "-m", "replaydbg", "export", "--test", "test_again.py", *words, str(recording)]
    return run(command, cwd=folder, env=passed_on())


def test_a_test_fails_as_recorded_and_passes_once_it_is_mended(tmp_path: Path) -> None:
    (tmp_path / "limit.txt").write_text("2.5")
    ran = run_pytest(tmp_path, SOURCE, wait="0", PLACE="here")
    assert ran.counts == {"failed": 1, "passed": 2}, ran.output
    (recording,) = (tmp_path / "test-results").glob("*/rec.rdbg")
    (tmp_path / "limit.txt").write_text("7")

    done = export(tmp_path, recording, "--check")

    assert done.status == 0, done
    assert "checked: the test fails as the recorded run did: AssertionError: (0." in done.stdout
    assert ", 'here') 5.5\n" in done.stdout.replace("\nassert", "\n")
    source = (tmp_path / "test_it.py").read_text()
    (tmp_path / "test_it.py").write_text(source.replace("found == limit", "limit == 5.5"))
    assert code_of_exported(tmp_path) == 0


def code_of_exported(folder: Path) -> int:
    """Run the exported test, whose environment lacks the variable; return pytest's exit code."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_again.py"]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV_"))}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, timeout=100, check=False).returncode
