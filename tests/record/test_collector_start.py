"""A recorded program begins with the collector's count of a plain run: its collections come about where they would."""

import gc
import sys
from pathlib import Path

import pytest

from replaydbg.log.reader import open_recording
from replaydbg.record.collector_start import first_counts
from tests.harness import tool
from tests.harness.replays import Outcome, passed_on, run

COUNTS = "import gc; print(*gc.get_count())"
# Allocations: other built-in modules, another environment. The phases of recorded runs were some 300 apart.
NEAR = 60


@pytest.mark.slow
def test_the_youngest_count_at_the_first_line_is_that_of_a_plain_run(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(COUNTS)

    plain = _numbers(_run([sys.executable, str(program)], tmp_path))
    recorded = _numbers(_recorded(program, tmp_path))

    assert abs(plain[0] - recorded[0]) < NEAR


@pytest.mark.slow
def test_chaos_draws_them_and_a_replay_has_the_same(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(COUNTS)

    one = _recorded(program, tmp_path, "--chaos", "1")
    other = _recorded(program, tmp_path, "--chaos", "2")

    assert one.stdout != other.stdout


def test_chaos_draws_the_same_from_the_same_seed() -> None:
    assert first_counts(7) == first_counts(7)
    assert all(count < threshold for count, threshold in zip(first_counts(7), gc.get_threshold(), strict=True))


def _run(command: list[str], directory: Path) -> Outcome:
    outcome = run(command, cwd=directory, env=passed_on(), timeout=60)
    assert outcome.status == 0, outcome.stderr
    return outcome


def _recorded(program: Path, directory: Path, *options: str) -> Outcome:
    """Records the program, and replays it equal."""
    recording = directory / f"run{len(list(directory.iterdir()))}.rdbg"
    recorded = _run(tool.record(sys.executable, recording, [str(program)], options), directory)
    assert _run(tool.replay(sys.executable, recording), directory).stdout == recorded.stdout
    with open_recording(recording) as opened:
        assert len(opened.header.collector) == 3
    return recorded


def _numbers(outcome: Outcome) -> list[int]:
    return [int(word) for word in outcome.stdout.split()]
