"""Recordings of a store keep once what they have in common; each can be removed, packed and replayed on its own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.log.sealed.store_blocks import common_in
from replaydbg.log.used_blocks import used_blocks
from replaydbg.store.catalog import Catalog, CatalogRow
from replaydbg.store.clearing import clear
from replaydbg.store.directory import Store
from replaydbg.store.room import Room
from tests.harness.process import Finished, run
from tests.harness.surroundings import without_steering
from tests.harness.waiting import wait_until
from tests.resume.going_on import KILLED, run_in

pytestmark = pytest.mark.slow

_TIMEOUT = 60.0
_PROGRAM = "import json, time, helper\nprint(json.dumps(helper.NAMES), time.time())\n"


def replaydbg(folder: Path, *words: str) -> Finished:
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(folder / "store")}
    return run([sys.executable, "-m", "replaydbg", *words], cwd=folder, env=env, timeout=_TIMEOUT)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(_PROGRAM)
    (tmp_path / "helper.py").write_text("NAMES = [1]\n" + "".join(f"# {number}\n" for number in range(20_000)))
    return tmp_path


def record(folder: Path, times: int) -> list[bytes]:
    return [replaydbg(folder, "record", "-q", "program.py").stdout for _ in range(times)]


def blocks(folder: Path) -> set[str]:
    return {path.name for path in (folder / "store" / DIRECTORY).iterdir() if path.name[0] != "."}


def make_old(folder: Path) -> None:
    for name in blocks(folder):
        os.utime(folder / "store" / DIRECTORY / name, (0, 0))


def test_a_second_recording_takes_a_hundredth(folder: Path) -> None:
    record(folder, 2)  # the first one compiles
    before = blocks(folder)
    record(folder, 1)

    assert blocks(folder) == before
    whole = replaydbg(folder, "pack", "run-3", "-o", "whole.rdbg")
    assert whole.status == 0, whole
    own, packed = (folder / "store" / "run-3.rdbg").stat().st_size, (folder / "whole.rdbg").stat().st_size
    assert own < packed / 10, (own, packed)


def test_what_others_need_stays_when_one_is_removed(folder: Path) -> None:
    outputs = record(folder, 3)
    make_old(folder)

    assert replaydbg(folder, "rm", "run-2").status == 0

    assert used_blocks(folder / "store" / "run-3.rdbg") & blocks(folder)
    assert replaydbg(folder, "replay", "run-3").stdout == outputs[2]
    assert replaydbg(folder, "replay", "run-1").stdout == outputs[0]


def test_the_last_one_takes_the_blocks_with_it(folder: Path) -> None:
    record(folder, 2)
    make_old(folder)

    assert replaydbg(folder, "rm", "run-1", "run-2").status == 0

    assert blocks(folder) == set()


def test_gc_removes_them_with_the_recordings(folder: Path) -> None:
    record(folder, 2)
    make_old(folder)

    assert replaydbg(folder, "gc", "--recordings", "--keep", "days 0").status == 0

    assert blocks(folder) == set()


def test_gc_alone_clears_the_store(folder: Path) -> None:
    record(folder, 1)
    make_old(folder)
    (folder / "store" / "run-1.rdbg").unlink()

    done = replaydbg(folder, "gc")

    assert done.status == 0, done
    assert b"0 are in use or too new" in done.stdout
    assert blocks(folder) == set()


def test_a_recording_that_is_read_is_complete_while_others_are_removed(folder: Path) -> None:
    outputs = record(folder, 2)
    make_old(folder)
    with open_recording(folder / "store" / "run-1.rdbg") as recording:
        assert replaydbg(folder, "rm", "run-2").status == 0
        assert b"".join(recording.pieces("world"))
        assert not recording.damage
    assert replaydbg(folder, "replay", "run-1").stdout == outputs[0]


def test_nothing_is_removed_while_a_recording_is_sealed(folder: Path) -> None:
    record(folder, 1)
    make_old(folder)
    (folder / "store" / "run-1.rdbg").unlink()

    with common_in(folder / "store"):
        cleared = clear(folder / "store")

    assert (cleared.blocks, cleared.why_not) == (0, "A recording that uses them is just being sealed.")
    assert clear(folder / "store").blocks > 0


@pytest.fixture
def removers(folder: Path) -> Iterator[None]:
    """Remove all blocks that can be, again and again, while the block records."""
    code = """import os, sys
from pathlib import Path
from replaydbg.store import clearing
clearing._YOUNG = -1.0
print(flush=True)
while True:
    for path in Path(sys.argv[1], "replaydbg-blocks").glob("[0-9a-f]*"):
        try:
            os.utime(path, (0, 0))
        except FileNotFoundError:
            pass
    clearing.clear(Path(sys.argv[1]))
"""
    (folder / "store" / DIRECTORY).mkdir(parents=True)
    process = subprocess.Popen([sys.executable, "-c", code, str(folder / "store")], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()


@pytest.mark.usefixtures("removers")
def test_recordings_are_whole_however_often_blocks_are_removed(folder: Path) -> None:
    outputs = record(folder, 6)

    for number, output in enumerate(outputs, 1):
        assert replaydbg(folder, "verify", f"run-{number}").status == 0
        assert replaydbg(folder, "replay", f"run-{number}").stdout == output


def test_a_damaged_block_is_written_anew(folder: Path) -> None:
    outputs = record(folder, 2)
    shared = used_blocks(folder / "store" / "run-1.rdbg") & used_blocks(folder / "store" / "run-2.rdbg")
    for name in shared & blocks(folder):
        (folder / "store" / DIRECTORY / name).write_bytes(b"")

    record(folder, 1)

    assert replaydbg(folder, "verify", "run-3").status == 0
    assert replaydbg(folder, "replay", "run-2").stdout == outputs[1]


def test_a_sealer_that_is_killed_loses_nothing(folder: Path) -> None:
    """What it has held is free again, and the recording is still there as a directory."""
    code = """import os, signal, sys
from replaydbg.log.sealed import group_blocks
from replaydbg.record.launcher import record
group_blocks.GroupBlocks.sync = lambda self: os.kill(os.getpid(), signal.SIGKILL)
record([sys.argv[1]])
"""
    env = without_steering(os.environ) | {"REPLAYDBG_STORE": str(folder / "store")}
    killed = run([sys.executable, "-c", code, "program.py"], cwd=folder, env=env, timeout=_TIMEOUT)

    assert killed.status == -9
    wait_until(lambda: clear(folder / "store").why_not == "")
    assert replaydbg(folder, "verify", "run-1").status == 0
    assert replaydbg(folder, "replay", "run-1").stdout == killed.stdout


def test_a_recording_for_a_file_of_its_own_needs_no_other(folder: Path) -> None:
    assert replaydbg(folder, "record", "-q", "-o", "own", "program.py").status == 0

    assert used_blocks(folder / "own.rdbg") - set(_sources(folder / "own.rdbg")) == set()
    assert not (folder / DIRECTORY).exists()
    assert not (folder / "store").exists()


def _sources(path: Path) -> list[str]:
    with open_recording(path) as recording:
        assert recording.end is not None
        return [each for each in recording.end.sources.values() if recording.section(f"source/{each}")]


def test_a_copy_without_the_blocks_says_what_to_do(folder: Path) -> None:
    record(folder, 1)
    (folder / "store" / "run-1.rdbg").rename(folder / "moved.rdbg")

    done = replaydbg(folder, "info", "moved.rdbg")

    assert done.status != 0
    assert b"use `replaydbg pack`" in done.stderr


def test_the_beginning_of_a_resumed_log_is_shared(folder: Path) -> None:
    (folder / "long.py").write_text("import os\nfor number in range(40_000):\n    os.getrandom(64)\n")
    command = [sys.executable, "-m", "replaydbg", "record", "-q", "long.py"]
    assert run_in(folder, command, killed_at=39_000).status in KILLED

    resumed = replaydbg(folder, "resume", "-q", "--in-flight=repeat", "run-1")

    assert resumed.status == 0, resumed
    with open_recording(folder / "store" / "run-2.rdbg") as recording:
        assert recording.size("log") > 2 << 20
    assert (folder / "store" / "run-2.rdbg").stat().st_size < 1 << 20
    assert replaydbg(folder, "replay", "run-2").status == 0


def test_the_room_of_shared_blocks_counts_once(folder: Path) -> None:
    record(folder, 3)
    store = Store(folder / "store")
    rows: list[CatalogRow] = Catalog(store, str).rows()

    room = Room(store)
    taken = [room.take(row) for row in rows[1:]]

    assert taken[0] > 10 * taken[1]
    assert taken[1] == rows[2].size
