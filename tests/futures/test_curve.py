"""The share of failing futures over the moments of a run: it ends at 100 %, and the step to there is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.futures.made import LOST_UPDATE, Ground

pytestmark = pytest.mark.slow


def failing(ground: Ground) -> None:
    """Put the recording of a future that fails in the place of the recording."""
    found = ground.futures(ground.first_thread(), 32, "-o", ".")
    name = next(group["recordings"][0] for group in found["groups"] if group["verdict"] == "failed")
    (ground.folder / name).rename(ground.folder / "one.rdbg")


def curve(ground: Ground, *words: str) -> dict[str, Any]:
    """Return the curve as data."""
    finished = ground.replaydbg("futures", "one.rdbg", "--curve", "--json", *words)
    assert finished.status in (0, 1, 3), finished
    found: dict[str, Any] = json.loads(finished.stdout)
    return found


def test_the_step_after_which_all_fail_is_named(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, LOST_UPDATE)
    failing(ground)

    found = curve(ground, "-n", "8")

    points = found["points"]
    assert points[0]["passed"] > 0
    assert points[-1]["failed"] > 0 == points[-1]["passed"]
    assert found["no_return"]["is_exact"]
    assert [(each["event"], each["switches"]) for each in points] == sorted(
        (each["event"], each["switches"]) for each in points
    )


def test_the_curve_in_words(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, LOST_UPDATE)
    failing(ground)

    finished = ground.replaydbg("futures", "one.rdbg", "--curve", "-n", "8")

    lines = finished.stdout.decode().splitlines()
    assert finished.status == 1, finished
    assert lines[0].startswith("Share of 8 futures of one.rdbg that fail, from ")
    assert any(line.startswith("No return after event ") for line in lines), lines
    assert any("█" * 30 in line and "100%" in line for line in lines)


def test_a_run_whose_futures_never_fail(tmp_path: Path) -> None:
    text = "import threading\nthread = threading.Thread(target=int)\nthread.start()\nthread.join()\n"
    ground = Ground.make(tmp_path, text)

    finished = ground.replaydbg("futures", "one.rdbg", "--curve", "-n", "4")

    assert finished.status == 0, finished
    assert b"From the last of these moments on no future fails." in finished.stdout


def test_curve_excludes_other_searches(tmp_path: Path) -> None:
    ground = Ground.make(tmp_path, "import time\ntime.monotonic()\n")

    for other in (("--systematic", "1"), ("--depth", "2"), ("--shrink",)):
        finished = ground.replaydbg("futures", "one.rdbg", "--curve", *other)
        assert finished.status == 2 and b"cannot be used together" in finished.stderr
