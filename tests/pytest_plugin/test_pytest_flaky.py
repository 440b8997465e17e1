"""Ten kinds of flaky tests: each is captured when it fails, replays each time, and leads to its planted line.

The recording is inspected in another directory, when the sources have been edited.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from replaydbg.replay.launcher import replay
from replaydbg.store.directory import index_path
from tests.harness.plugin_runs import Ran, rerun_pytest

FIXTURES = Path(__file__).parents[2] / "fixtures" / "pytest"
KINDS = sorted(path.name for path in FIXTURES.iterdir() if path.is_dir() and not path.name.startswith("_"))
SESSIONS = 40
REPLAYS = int(os.environ.get("TEST_REPLAYS", "2"))
"""`tox -e flaky` asks for 20."""

pytestmark = pytest.mark.slow


def run_until_failure(folder: Path) -> Ran:
    for attempt in range(SESSIONS):
        ran = rerun_pytest(folder, "-q", "--replaydbg-bisect", WORKERS=str(3 + attempt % 2))
        if ran.status == 1:
            return ran
        assert ran.status == 0, ran.output
    raise AssertionError(f"no failure in {SESSIONS} sessions")


def test_there_are_ten() -> None:
    assert len(KINDS) == 10


@pytest.mark.timeout(600)
# `tox -e flaky` takes all of them, and replays each 20 times.
@pytest.mark.parametrize("kind", KINDS if REPLAYS >= 20 else ["random", "set_order", "thread_race"])
def test_captured(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    shutil.copytree(FIXTURES / kind, folder)
    source = (folder / f"test_{kind}.py").read_text()
    planted = next(line.partition("#")[0].strip() for line in source.splitlines() if "PLANTED" in line)

    ran = run_until_failure(folder)

    (name,) = ran.kept()
    meta = ran.meta(name)
    assert meta["verified"] is True, meta
    assert meta["size"] < 200 << 10
    moved = tmp_path / "elsewhere"
    shutil.move(folder / "test-results", moved)
    for file in folder.glob("*.py"):
        file.write_text("raise SystemExit('edited')\n")
    recording = moved / name / "rec.rdbg"
    for _ in range(REPLAYS):
        result = replay(recording, stdout=2, stderr=2)
        assert result.divergence is None
    assert meta["wrong"]["source"].startswith(planted), meta
    index_path(recording).unlink(missing_ok=True)
    command = [sys.executable, "-m", "replaydbg", "bisect", "snapshots", "--json", "-q", str(recording)]
    # The commands of the report, after everything of the project was deleted.
    asked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert asked.returncode == 1, asked.stdout + asked.stderr
    assert json.loads(asked.stdout)["culprit"]["source"].startswith(planted), asked.stdout
    assert f"replaydbg bisect snapshots test-results/{name}/rec.rdbg" in ran.output
