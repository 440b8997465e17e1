"""`resume` reports sources that have changed since the program loaded them, and runs the recorded code."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.resume.going_on import KILLED, record_in, resume_in, run_in

pytestmark = pytest.mark.slow

_PROGRAM = """
import os, signal
import other
os.kill(os.getpid(), signal.SIGKILL)
print(other.NAME)
"""
_PLAN = [sys.executable, "-m", "replaydbg", "resume", "killed.rdbg", "--plan"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with a recording of the program, which was killed after it had imported a module from its cache."""
    (tmp_path / "program.py").write_text(_PROGRAM)
    (tmp_path / "other.py").write_text("NAME = 'recorded'\n")
    run_in(tmp_path, [sys.executable, "-c", "import other"])
    assert record_in(tmp_path, "killed").status in KILLED
    return tmp_path


def test_unchanged_sources_are_not_reported(folder: Path) -> None:
    assert b"sources" not in run_in(folder, _PLAN).stdout


@pytest.mark.parametrize("name", ["program.py", "other.py"])
def test_a_changed_source(name: str, folder: Path) -> None:
    with (folder / name).open("a") as file:
        file.write("NAME = 'changed'\n")
    sentence = f"  sources    {folder / name} was changed after the program loaded it; the recorded code runs\n"

    planned = run_in(folder, _PLAN)
    facts = json.loads(run_in(folder, [*_PLAN, "--json"]).stdout)
    resumed = run_in(folder, [*_PLAN[:-1], "--in-flight=skip"])

    assert sentence in planned.stdout.decode()
    assert facts["sources"] == [{"path": str(folder / name), "change": "changed"}]
    assert f"replaydbg: {sentence}" in resumed.stderr.decode()
    assert resumed.stdout == b"recorded\n"


def test_a_changed_source_of_the_same_size_and_time(folder: Path) -> None:
    before = (folder / "program.py").stat()
    (folder / "program.py").write_text(_PROGRAM.replace("NAME", "EMAN"))
    os.utime(folder / "program.py", ns=(before.st_atime_ns, before.st_mtime_ns))

    assert b"program.py was changed after the program loaded it" in run_in(folder, _PLAN).stdout


def test_several_sources(folder: Path) -> None:
    (folder / "program.py").unlink()
    (folder / "other.py").unlink()
    sentence = "2 files were changed or deleted after the program loaded them, such as"

    assert f"  sources    {sentence} {folder / 'other.py'}; " in run_in(folder, _PLAN).stdout.decode()
    assert resume_in(folder, "killed", "--in-flight=skip").stdout == b"recorded\n"
