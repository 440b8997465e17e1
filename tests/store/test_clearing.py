"""Blocks that no recording of tests uses any more are removed, and no others."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.shared import DIRECTORY, BlockStore
from replaydbg.replay.launcher import replay
from replaydbg.store import clearing
from replaydbg.store.clearing import clear, clear_if_many
from replaydbg.store.sessions import begin_session
from tests.harness.plugin_runs import Ran, rerun_pytest

pytestmark = pytest.mark.slow

SOURCE = "import random, helper\ndef test_bad():\n    assert random.random() == helper.NUMBER\n"


def run(folder: Path, number: int, *, is_made_old: bool = True) -> Ran:
    """Run a session in which a test fails, with a module that only its recording has; age its blocks afterwards."""
    (folder / "helper.py").write_text(f"NUMBER = {number}\n" + f"# {number}\n" * 20000)
    (folder / "test_it.py").write_text(SOURCE)
    ran = rerun_pytest(folder, "-q")
    assert ran.kept(), ran.output
    for block in blocks(folder) if is_made_old else ():
        os.utime(block, (0, 0))
    return ran


def blocks(folder: Path) -> list[Path]:
    return [path for path in (folder / "test-results" / "replaydbg-blocks").iterdir() if path.name[0] != "."]


def test_blocks_of_replaced_recordings_go(tmp_path: Path) -> None:
    ran = run(tmp_path, 2)
    first = {path.name for path in blocks(tmp_path)}
    assert clear(tmp_path / "test-results").blocks == 0
    run(tmp_path, 3)

    cleared = clear(tmp_path / "test-results")

    assert cleared.blocks > 0
    assert cleared.kept == len(blocks(tmp_path))
    assert first - {path.name for path in blocks(tmp_path)}
    recording = ran.recording("test_it.py-test_bad")
    with open_recording(recording) as opened:
        assert opened.shared_names() <= {path.name for path in blocks(tmp_path)}
        assert opened.end is not None and opened.end.sources
        for name in opened.end.sources.values():
            assert opened.section(f"source/{name}")
    assert replay(recording, stdout=2, stderr=2).divergence is None
    assert clear(tmp_path / "test-results").blocks == 0


def test_what_a_session_uses_that_runs_stays(tmp_path: Path) -> None:
    run(tmp_path, 2)
    results = tmp_path / "test-results"
    (results / "test_it.py-test_bad" / "rec.rdbg").unlink()
    work = begin_session(results, os.getpid())
    for each in (tmp_path / "test-results" / "replaydbg-blocks").iterdir():
        os.utime(each)  # as storing it once more does
    (work / "began").touch()
    os.utime(work / "began", (time.time() - 500, time.time() - 500))
    old = blocks(tmp_path)[0]
    os.utime(old, (0, 0))

    assert clear(results).blocks == 1
    assert not old.exists()

    shutil.rmtree(work)
    (results / ".replaydbg-work-999999999").mkdir()  # left by a launcher that was killed
    for each in blocks(tmp_path):
        os.utime(each, (time.time() - 300, time.time() - 300))
    assert clear(results).kept == 0


def test_what_is_stored_again_is_young(tmp_path: Path) -> None:
    name = BlockStore(tmp_path).put(b"block").hex()
    (block,) = (tmp_path / DIRECTORY).iterdir()
    os.utime(block, (0, 0))

    assert BlockStore(tmp_path).put(b"block").hex() == name == block.name

    assert block.stat().st_mtime > time.time() - 100


def test_a_damaged_recording_hinders(tmp_path: Path) -> None:
    ran = run(tmp_path, 2)
    other = tmp_path / "test-results" / "other" / "rec.rdbg"
    other.parent.mkdir()
    data = ran.recording("test_it.py-test_bad").read_bytes()
    other.write_bytes(data[: len(data) // 2])
    for path in tmp_path.glob("test-results/test_it.py-test_bad/*"):
        path.unlink()

    cleared = clear(tmp_path / "test-results")

    assert (cleared.blocks, cleared.kept) == (0, len(blocks(tmp_path)))
    assert "damaged" in cleared.why_not
    (tmp_path / "test-results" / "other" / "rec.rdbg").write_text("something else")
    assert clear(tmp_path / "test-results").kept == 0


def test_sessions_clear_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, 2)
    results = tmp_path / "test-results"
    monkeypatch.setattr(clearing, "_FEWEST", 10)
    assert clear_if_many(results) is not None
    for number in range(300):
        path = results / "replaydbg-blocks" / f"{number:032x}"
        path.write_bytes(b"old")
        os.utime(path, (0, 0))

    run(tmp_path, 2, is_made_old=False)

    assert not [path for path in blocks(tmp_path) if path.read_bytes() == b"old"]
    assert clear_if_many(results) is None


def test_few_blocks_are_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "replaydbg-blocks").mkdir()
    for number in range(250):
        (tmp_path / "replaydbg-blocks" / f"{number:032x}").touch()
    monkeypatch.setattr(clearing, "clear", lambda directory: pytest.fail("recordings were read"))

    assert clear_if_many(tmp_path) is None
    assert clear_if_many(tmp_path / "nothing") is None


def test_the_command(tmp_path: Path) -> None:
    run(tmp_path, 2)
    (tmp_path / "test-results" / "test_it.py-test_bad" / "rec.rdbg").unlink()

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "replaydbg", "gc", *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    assert command().stdout.startswith("Removed ")
    assert blocks(tmp_path) == []
    assert command("nowhere").returncode == 2
