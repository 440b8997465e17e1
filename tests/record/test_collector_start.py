"""A recorded program begins with the collector's counts of a plain run: its collections come about where they would."""

import gc
import sys
from pathlib import Path

import pytest

from replaydbg.log.reader import open_recording
from replaydbg.record.collector_start import first_counts
from tests.harness import tool
from tests.harness.replays import Outcome, passed_on, run

COUNTS = "import gc; print(*gc.get_count(), *gc.get_threshold())"
# Garbage until the first full collection: the generation and the object's number at each collection. Nothing survives:
# what was alive before decides whether a full collection comes.
COLLECTIONS = """
import gc
seen = []
gc.callbacks.append(lambda phase, info: seen.append((info["generation"], number)) if phase == "stop" else None)
for number in range(500_000):
    garbage = []
    garbage.append(garbage)
    if seen and seen[-1][0] == 2:
        break
for generation, number in seen:
    print(generation, number)
"""
# Allocations: other built-in modules, another environment. The phases of recorded runs were some 300 apart.
NEAR = 60


@pytest.mark.slow
def test_the_counts_at_the_first_line_are_those_of_a_plain_run(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(COUNTS)

    plain = _numbers(_run([sys.executable, str(program)], tmp_path))
    recorded = _numbers(_recorded(program, tmp_path))

    assert abs(_allocations(plain) - _allocations(recorded)) < NEAR
    if NEAR < plain[0] < plain[3] - NEAR:  # else a collection may be on the other side of the first line
        assert recorded[1:3] == plain[1:3]


@pytest.mark.slow
def test_collections_of_each_generation_come_where_they_come_in_a_plain_run(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(COLLECTIONS)

    plain = _numbers(_run([sys.executable, str(program)], tmp_path))
    recorded = _numbers(_recorded(program, tmp_path))

    generations = recorded[::2]
    assert generations == plain[::2]
    assert generations[-1] == 2
    assert max(abs(here - there) for here, there in zip(recorded[1::2], plain[1::2], strict=True)) < NEAR


@pytest.mark.slow
def test_chaos_draws_them_and_a_replay_has_the_same(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(COUNTS)

    one = _recorded(program, tmp_path, "--chaos", "1")
    other = _recorded(program, tmp_path, "--chaos", "2")

    assert one.stdout != other.stdout


def test_chaos_draws_the_same_from_the_same_seed() -> None:
    assert first_counts(7) == first_counts(7)
    assert all(count < threshold for count, threshold in zip(first_counts(7)[:3], gc.get_threshold(), strict=True))


def test_chaos_draws_the_counts_of_all_generations() -> None:
    drawn = [first_counts(seed) for seed in range(20)]

    assert all(len({counts[generation] for counts in drawn}) > 5 for generation in range(3))


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
        assert len(opened.header.collector) == 4
    return recorded


def _numbers(outcome: Outcome) -> list[int]:
    return [int(word) for word in outcome.stdout.split()]


def _allocations(numbers: list[int]) -> int:
    """Return how many allocations without a deallocation lead to these counts, by these thresholds."""
    youngest, middle, oldest, *thresholds = numbers
    return youngest + (thresholds[0] + 1) * (middle + (thresholds[1] + 2) * oldest)
