"""`replaydbg check`: several recordings at once, and changed modules that nevertheless come from the recording."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MAIN = (
    "import sys\nsys.path.insert(0, sys.argv[1])\nimport helper\nimport shop\nprint(1 // helper.value, shop.price())\n"
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with a program that fails by a module elsewhere, recorded as `run.rdbg`."""
    (tmp_path / "main").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "main" / "run.py").write_text(MAIN)
    (tmp_path / "main" / "shop.py").write_text("def price():\n    return 7\n")
    (tmp_path / "elsewhere" / "helper.py").write_text("value = 0\n")
    command(tmp_path, "record", "-q", "-o", "run", "main/run.py", "elsewhere")
    return tmp_path


def command(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "replaydbg", *words], cwd=directory, capture_output=True, text=True, check=False
    )


def test_other_modules_come_from_the_recording(project: Path) -> None:
    (project / "elsewhere" / "helper.py").write_text("value = 1\n")

    today = command(project, "check", "run.rdbg")
    recorded = command(project, "check", "run.rdbg", "--rest-recorded", "--source-root", "main=main")

    assert (today.returncode, recorded.returncode) == (0, 1)
    assert "no longer fails" in today.stdout
    assert "still fails: ZeroDivisionError" in recorded.stdout


def test_a_directory_in_another_one_stays_as_recorded(project: Path) -> None:
    (project / "elsewhere" / "helper.py").write_text("value = 1\n")
    words = ["check", "run.rdbg", "--source-root", f"{project}={project}"]

    moved = command(project, *words)
    left_out = command(project, *words[:2], "--source-root", f"{project / 'elsewhere'}=", *words[2:], "--rest-recorded")

    assert (moved.returncode, left_out.returncode) == (0, 1)


def test_the_rest_need_not_exist(project: Path) -> None:
    shutil.rmtree(project / "elsewhere")

    found = command(project, "check", "run.rdbg", "--rest-recorded", "--source-root", "main=main")

    assert found.returncode == 1
    assert "still fails: ZeroDivisionError" in found.stdout


def test_several_recordings(project: Path) -> None:
    command(project, "record", "-q", "-o", "good", "-c", "print(1)")

    found = command(project, "check", "-q", "run.rdbg", "good.rdbg")
    data = command(project, "check", "--json", "run.rdbg", "good.rdbg")

    assert (found.returncode, data.returncode) == (1, 1)
    first, second = found.stdout.splitlines()
    assert first.startswith("run.rdbg: still fails: ZeroDivisionError")
    assert second.startswith("good.rdbg: passes, as recorded")
    verdicts = [(each["recording"], each["verdict"]) for each in json.loads(data.stdout)["recordings"]]
    assert verdicts == [("run.rdbg", "bad"), ("good.rdbg", "good")]


def test_a_new_directory_must_exist(project: Path) -> None:
    found = command(project, "check", "run.rdbg", "--source-root", "main=nowhere")

    assert found.returncode == 128
    assert "give OLD=NEW, where NEW is a directory, or empty" in found.stderr
