"""The recordings that `hunt` keeps in the store share blocks with the others; what it discards leaves nothing there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.log.used_blocks import used_blocks
from tests.harness.surroundings import without_steering

pytestmark = pytest.mark.slow

_SECRET = "q8Zr5d1f0c7a9b3eWk"
_PROGRAM = """import json, os, sys, helper
runs = int(open("runs").read())
open("runs", "w").write(str(runs + 1))
{more}
print("this is run", runs, len(json.dumps(helper.NAMES)))
sys.exit(int(runs % 3 == 2))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory with a program of which every third run fails."""
    write(tmp_path, "")
    (tmp_path / "helper.py").write_text("NAMES = [1]\n" + "".join(f"# {number}\n" for number in range(20_000)))
    return tmp_path


def write(folder: Path, more: str) -> None:
    (folder / "program.py").write_text(_PROGRAM.format(more=more))
    (folder / "runs").write_text("0")


def tool(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(folder / "store"), "SERVICE_TOKEN": _SECRET}
    command = [sys.executable, "-m", "replaydbg", *words]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def hunted(folder: Path, *words: str) -> None:
    done = tool(folder, "hunt", "-q", "--jobs", "1", *words, "program.py")
    assert done.returncode == 0, done.stderr


def blocks(folder: Path) -> set[str]:
    return {path.name for path in (folder / "store" / DIRECTORY).iterdir() if path.name[0] != "."}


def of_hunt(folder: Path) -> list[Path]:
    return sorted((folder / "store").glob("hunt-1-*"))


def test_they_share_blocks_with_all_others(folder: Path) -> None:
    for _ in range(2):  # the first one compiles
        tool(folder, "record", "-q", "program.py")
    (folder / "runs").write_text("0")
    before = blocks(folder)

    hunted(folder)

    assert [each.name for each in of_hunt(folder)] == ["hunt-1-fail.rdbg", "hunt-1-pass.rdbg"]
    assert blocks(folder) == before
    assert tool(folder, "pack", "hunt-1-fail", "-o", "whole.rdbg").returncode == 0
    assert of_hunt(folder)[0].stat().st_size < (folder / "whole.rdbg").stat().st_size / 10


def test_they_replay_and_verify(folder: Path) -> None:
    hunted(folder)

    failed, passed = tool(folder, "replay", "hunt-1-fail"), tool(folder, "replay", "hunt-1-pass")

    assert (failed.stdout, failed.returncode) == ("this is run 2 3\n", 1)
    assert (passed.stdout, passed.returncode) == ("this is run 0 3\n", 0)
    assert [tool(folder, "verify", f"hunt-1-{end}").returncode for end in ("fail", "pass")] == [0, 0]


def test_discarded_runs_leave_no_blocks(folder: Path) -> None:
    write(folder, "open('noise', 'wb').write(os.urandom(3 << 20))")

    hunted(folder)

    assert blocks(folder) == {name for each in of_hunt(folder) for name in used_blocks(each)} & blocks(folder)
    assert tool(folder, "replay", "hunt-1-fail").returncode == 1


def test_secrets_stay_masked(folder: Path) -> None:
    write(folder, "print(len(os.environ['SERVICE_TOKEN']), file=sys.stderr)")

    hunted(folder)

    stored = [each.read_bytes() for each in (folder / "store").rglob("*") if each.is_file()]
    assert not any(_SECRET.encode() in each for each in stored)
    with open_recording(of_hunt(folder)[0], with_secrets=False) as recording:
        assert _SECRET not in repr(recording.header)
    assert tool(folder, "replay", "hunt-1-fail").stderr == f"{len(_SECRET)}\n"


def test_they_stay_whole_where_blocks_cannot_be_stored(folder: Path) -> None:
    (folder / "store").mkdir()
    (folder / "store" / DIRECTORY).write_text("in the way")

    hunted(folder)

    assert [each.name for each in of_hunt(folder)] == ["hunt-1-fail.rdbg", "hunt-1-pass.rdbg"]
    assert tool(folder, "replay", "hunt-1-fail").returncode == 1


def test_a_directory_of_the_user_gets_files_that_need_no_other(folder: Path) -> None:
    hunted(folder, "-o", "caught")
    (folder / "caught" / "fail.rdbg").rename(folder / "elsewhere.rdbg")

    assert not (folder / "caught" / DIRECTORY).exists()
    assert tool(folder, "replay", "elsewhere.rdbg").returncode == 1
