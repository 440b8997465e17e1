"""A group whose maker was killed before it had its list of processes is named in one sentence, and can be removed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.process import Finished, run
from tests.harness.surroundings import without_steering
from tests.harness.waiting import wait_until
from tests.recovery.killed_groups import record_killed, replaydbg

pytestmark = pytest.mark.slow

_FORKS = """import os, sys
begin, go = os.pipe()
if not os.fork():
    os.close(go)
    os.read(begin, 1)
    os._exit(0)
open("ready", "w").close()
sys.stdin.readline()
os.close(go)
os.wait()
"""
_SENTENCE = b"has no list of its processes (group.json), so it cannot be read: it is just being made, or replaydbg was"

# The process that seals is started right after all has been made, and first writes the list.
_BEFORE_THE_LIST = """import os, runpy, sys
from replaydbg.record import group
def instead(*_, **__):
    {act}
group.SealerProcess = instead
sys.argv[0] = "replaydbg"
runpy.run_module("replaydbg", run_name="__main__")
"""
_IS_KILLED = _BEFORE_THE_LIST.format(act="os.kill(os.getpid(), 9)")
_WAITS = _BEFORE_THE_LIST.format(act='open("made", "w").close(), sys.stdin.read()')


def _environment(folder: Path) -> dict[str, str]:
    return without_steering(os.environ) | {"REPLAYDBG_STORE": str(folder / "store")}


def _killed(folder: Path, *words: str) -> Finished:
    return run([sys.executable, "-c", _IS_KILLED, *words], cwd=folder, env=_environment(folder), timeout=60.0)


@pytest.fixture
def resumed(tmp_path: Path) -> Path:
    """Return a folder with a killed group `one`, and what a resumption of it to `two` has left."""
    record_killed(tmp_path, _FORKS)
    assert _killed(tmp_path, "resume", "one", "-o", "two").status == -9
    assert (tmp_path / "two.rdbgs" / "1.rdbg-live").is_dir()
    return tmp_path


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """Return a folder whose store has a recording, and after it what a killed recorder has left."""
    (tmp_path / "program.py").write_text("print(1)")
    assert replaydbg(tmp_path, "record", "program.py").status == 0
    assert _killed(tmp_path, "record", "program.py").status == -9
    return tmp_path


def test_each_command_prints_the_sentence(resumed: Path) -> None:
    for command in ("ps two", "info two", "info two/1", "verify two", "replay two", "resume two", "resume two/1"):
        refused = replaydbg(resumed, *command.split())

        assert refused.status == 2, refused
        assert _SENTENCE in refused.stderr, refused


def test_it_is_no_continuation_and_can_be_removed(resumed: Path) -> None:
    removed = replaydbg(resumed, "rm", "two")
    again = replaydbg(resumed, "resume", "one", "-o", "two")

    assert removed.status == 0, removed
    assert again.status == 0, again


def test_it_can_be_removed_without_recordings(resumed: Path) -> None:
    for path in (resumed / "two.rdbgs").glob("*.rdbg-live"):
        for each in path.iterdir():
            each.unlink()
        path.rmdir()

    removed = replaydbg(resumed, "rm", "two")

    assert removed.status == 0, removed
    assert not (resumed / "two.rdbgs").exists()


def test_the_latest_is_another_one(stored: Path) -> None:
    assert _SENTENCE in replaydbg(stored, "ls").stdout
    assert replaydbg(stored, "replay", "latest").stdout == b"1\n"


def test_gc_removes_it(stored: Path) -> None:
    collected = replaydbg(stored, "gc", "--recordings", "--keep", "last")

    assert collected.status == 0, collected
    assert [path.name for path in (stored / "store").glob("run*")] == ["run-1.rdbg"]


def test_it_is_kept_while_it_is_made(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("print(1)")
    command = [sys.executable, "-c", _WAITS, "record", "program.py"]
    maker = subprocess.Popen(command, cwd=tmp_path, env=_environment(tmp_path), stdin=subprocess.PIPE)
    wait_until(lambda: (tmp_path / "made").exists() or maker.poll() is not None)

    refused = replaydbg(tmp_path, "rm", "run-1")
    collected = replaydbg(tmp_path, "gc", "--recordings", "--keep", "last")
    maker.kill()
    maker.communicate()

    assert (refused.status, collected.status) == (2, 1), (refused, collected)
    assert b"is just being made. --force removes it anyway." in refused.stderr
    assert b"Not removed: run-1 (it is just being made)." in collected.stdout


def test_a_group_ends_with_its_last_recording(resumed: Path) -> None:
    assert replaydbg(resumed, "rm", "two").status == 0
    assert replaydbg(resumed, "resume", "one", "-o", "two").status == 0

    for name in ("two/1", "two/2"):
        assert replaydbg(resumed, "rm", name).status == 0

    assert not (resumed / "two.rdbgs").exists()
