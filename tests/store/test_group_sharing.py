"""Groups of a store have files of their own for what they share with other recordings, but not on the disk twice."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from replaydbg.cli.recordings.verify import _print_restored
from replaydbg.log.sealed.block_places import BlockPlaces
from replaydbg.log.sealed.group_blocks import GroupBlocks
from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.log.used_blocks import RestoredBlocks
from replaydbg.store.catalog import Catalog
from replaydbg.store.directory import Store
from replaydbg.store.room import Room
from tests.harness.children import completed
from tests.harness.process import Finished
from tests.store.test_shared_blocks import blocks, make_old, replaydbg

pytestmark = pytest.mark.slow

_PROGRAM = """\
import json, multiprocessing, time, helper

def work(number):
    print(json.dumps([number, helper.NAMES]), time.time(), flush=True)

if __name__ == "__main__":
    for method in ("spawn", "fork"):
        child = multiprocessing.get_context(method).Process(target=work, args=(1,))
        child.start()
        child.join()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(_PROGRAM)
    (tmp_path / "alone.py").write_text("import json, multiprocessing, time, helper\n")
    (tmp_path / "helper.py").write_text("NAMES = [1]\n" + "".join(f"# {number}\n" for number in range(20_000)))
    return tmp_path


def record(folder: Path, times: int) -> list[Finished]:
    made = []
    for _ in range(times):
        made.append(replaydbg(folder, "record", "-q", "program.py"))
        assert made[-1].status == 0, made
        for group in (folder / "store").glob("*.rdbgs"):
            completed(group)
    return made


def test_a_further_group_takes_little(folder: Path) -> None:
    record(folder, 2)  # the first one compiles
    before = blocks(folder)

    (made,) = record(folder, 1)

    group = folder / "store" / "run-3.rdbgs"
    assert blocks(folder) == before
    # The names in the store, here, and in the second group at least.
    assert min(path.stat().st_nlink for path in (group / DIRECTORY).iterdir()) >= 3
    assert replaydbg(folder, "verify", "run-3").status == 0
    assert replaydbg(folder, "replay", "run-3").stdout == made.stdout


def test_it_shares_with_recordings_of_one_process(folder: Path) -> None:
    assert replaydbg(folder, "record", "-q", "alone.py").status == 0
    alone = blocks(folder)
    record(folder, 1)

    ours = {path.name for path in (folder / "store" / "run-2.rdbgs" / DIRECTORY).iterdir()}
    assert len(ours & alone) > 1
    assert ours <= blocks(folder)


def test_a_copy_of_its_directory_needs_no_other(folder: Path) -> None:
    made = record(folder, 2)
    shutil.copytree(folder / "store" / "run-2.rdbgs", folder / "copy.rdbgs")
    shutil.rmtree(folder / "store")

    assert replaydbg(folder, "verify", "copy.rdbgs").status == 0
    assert replaydbg(folder, "replay", "copy.rdbgs").stdout == made[1].stdout


def test_what_others_need_stays_when_one_is_removed(folder: Path) -> None:
    made = record(folder, 3)
    make_old(folder)

    assert replaydbg(folder, "rm", "run-1").status == 0

    assert blocks(folder)
    for number in (2, 3):
        assert replaydbg(folder, "verify", f"run-{number}").status == 0
    assert replaydbg(folder, "replay", "run-3").stdout == made[2].stdout
    make_old(folder)
    assert replaydbg(folder, "gc", "--recordings", "--keep", "days 0").status == 0
    assert blocks(folder) == set()


def test_blocks_that_are_gone_from_the_store_are_still_those_of_the_group(folder: Path) -> None:
    made = record(folder, 1)
    shutil.rmtree(folder / "store" / DIRECTORY)

    made += record(folder, 1)

    for number in (1, 2):
        assert replaydbg(folder, "verify", f"run-{number}").status == 0
        assert replaydbg(folder, "replay", f"run-{number}").stdout == made[number - 1].stdout


def test_a_damaged_block_is_written_anew(folder: Path) -> None:
    record(folder, 2)
    shared = folder / "store" / DIRECTORY
    for name in blocks(folder):
        (shared / name).unlink()
        (shared / name).write_bytes(b"damaged")

    made = record(folder, 1)

    assert replaydbg(folder, "verify", "run-3").status == 0
    assert replaydbg(folder, "replay", "run-3").stdout == made[0].stdout
    for path in (folder / "store" / "run-3.rdbgs" / DIRECTORY).iterdir():
        assert path.samefile(shared / path.name)


def test_a_block_that_is_damaged_for_all_is_mended_for_all_by_the_next_recording(folder: Path) -> None:
    """Groups have it by other names of the same file, which is damaged in place."""
    made = record(folder, 2)
    shared = folder / "store" / DIRECTORY
    own = {path.name for path in (folder / "store" / "run-2.rdbgs" / DIRECTORY).iterdir()}
    block = max((shared / name for name in own & blocks(folder)), key=lambda path: path.stat().st_size)
    with block.open("r+b") as file:
        file.write(bytes(100))

    record(folder, 1)

    assert replaydbg(folder, "replay", "run-2").stdout == made[1].stdout
    verified = replaydbg(folder, "verify", "run-2")
    assert verified.status == 0, verified
    assert b"1 damaged or missing block in the group's directory was restored" in verified.stdout
    assert block.samefile(folder / "store" / "run-2.rdbgs" / DIRECTORY / block.name)


def test_blocks_that_cannot_be_restored_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    _print_restored(RestoredBlocks(2, 1, "Read-only file system"))

    assert capsys.readouterr().out.splitlines() == [
        "2 damaged or missing blocks in the group's directory were restored from the store.",
        "1 damaged or missing block in the group's directory was not restored from the store: Read-only file system.",
    ]


def test_the_block_of_the_store_takes_the_place_of_a_damaged_one(tmp_path: Path) -> None:
    group = tmp_path / "run-1.rdbgs"
    group.mkdir()
    name = GroupBlocks(BlockPlaces(tmp_path)).put(b"there already").hex()
    (group / DIRECTORY).mkdir()
    (group / DIRECTORY / name).write_bytes(b"damaged")

    GroupBlocks(BlockPlaces(group, tmp_path)).put(b"there already")

    assert (group / DIRECTORY / name).samefile(tmp_path / DIRECTORY / name)


def test_its_room_counts_once(folder: Path) -> None:
    record(folder, 3)
    room = Room(Store(folder / "store"))

    taken = [room.take(row) for row in Catalog(Store(folder / "store"), str).rows()]

    assert taken[0] > 10 * taken[2]


def test_without_links_it_has_blocks_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EMLINK, os.strerror(errno.EMLINK))

    group = tmp_path / "run-1.rdbgs"
    group.mkdir()
    GroupBlocks(BlockPlaces(tmp_path)).put(b"there already")
    monkeypatch.setattr(os, "link", refuse)
    made = GroupBlocks(BlockPlaces(group, tmp_path))
    names = [made.put(text).hex() for text in (b"there already", b"new")]
    made.sync()

    assert sorted(path.name for path in (group / DIRECTORY).iterdir()) == sorted(names)
    assert [path.name for path in (tmp_path / DIRECTORY).iterdir()] == names[:1]
