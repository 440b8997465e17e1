"""The cache of compressed blocks: a recording is the same with it and without it, whatever is in the cache."""

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.log.entries.logfile import LOG_HEADER
from replaydbg.log.files import PIECE
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.shared import expand
from replaydbg.record import record
from replaydbg.record.caches import block_cache
from replaydbg.record.caches.block_cache import BlockCache

KEY = b"k" * 32


def _block(seed: int) -> bytes:
    return random.Random(seed).randbytes(PIECE // 16) * 16


def _filled(directory: Path, raw: bytes, key: bytes = KEY) -> Path:
    """Compress a block twice, each time for another recording, and return its file."""
    for _ in range(2):
        assert expand(BlockCache(str(directory), key).compress(raw), len(raw)) == raw
    (file,) = directory.iterdir()
    return file


def _is_found(directory: Path, raw: bytes, key: bytes = KEY) -> bool:
    """Whether a block comes from the cache: then nothing is compressed."""
    cache = BlockCache(str(directory), key)
    compressed = []

    def compress(data: bytes) -> bytes:
        compressed.append(data)
        return BlockCache(os.devnull, KEY).compress(data)

    cache._compress = compress
    assert expand(cache.compress(raw), len(raw)) == raw
    return not compressed


def test_the_second_recording_fills_the_file_and_the_third_uses_it(tmp_path: Path) -> None:
    directory = tmp_path / "cache"
    raw = _block(1)

    assert not _is_found(directory, raw)
    (file,) = directory.iterdir()
    assert file.stat().st_size == 0
    assert not _is_found(directory, raw)
    assert file.stat().st_size > 0
    assert _is_found(directory, raw)
    assert not _is_found(directory, _block(2))
    assert oct(file.stat().st_mode & 0o777) == "0o600"
    assert oct(directory.stat().st_mode & 0o777) == "0o700"


@given(st.lists(st.integers(0, 3), max_size=8))
def test_every_block_comes_back(seeds: list[int]) -> None:
    with tempfile.TemporaryDirectory() as name:
        for seed in seeds:
            raw = _block(seed)
            assert expand(BlockCache(name, KEY).compress(raw), PIECE) == raw


def test_a_shorter_block_is_only_compressed(tmp_path: Path) -> None:
    raw = b"x" * (PIECE - LOG_HEADER - 1)

    assert expand(BlockCache(str(tmp_path / "cache"), KEY).compress(raw), len(raw)) == raw
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("place", [0, 31, 32, -1])
def test_a_damaged_file_is_ignored_and_replaced(tmp_path: Path, place: int) -> None:
    raw = _block(1)
    file = _filled(tmp_path / "cache", raw)
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)

    assert not _is_found(tmp_path / "cache", raw)
    assert _is_found(tmp_path / "cache", raw)


@pytest.mark.parametrize("size", [0, 1, 32, 33, 100])
def test_a_file_that_was_cut_is_ignored(tmp_path: Path, size: int) -> None:
    raw = _block(1)
    file = _filled(tmp_path / "cache", raw)
    file.write_bytes(file.read_bytes()[:size])

    assert not _is_found(tmp_path / "cache", raw)


def test_a_file_of_another_block_is_ignored(tmp_path: Path) -> None:
    one = _filled(tmp_path / "one", _block(1))
    two = _filled(tmp_path / "two", _block(2))
    one.write_bytes(two.read_bytes())

    assert not _is_found(tmp_path / "one", _block(1))


def test_a_file_of_another_user_is_ignored(tmp_path: Path) -> None:
    raw = _block(1)
    ours, theirs = _filled(tmp_path / "ours", raw), _filled(tmp_path / "theirs", raw, b"t" * 32)
    ours.write_bytes(theirs.read_bytes())

    assert ours.name != theirs.name
    assert not _is_found(tmp_path / "ours", raw)


@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
def test_what_is_no_file_is_ignored(tmp_path: Path, kind: str) -> None:
    raw = _block(1)
    file = _filled(tmp_path / "cache", raw)
    moved = file.rename(tmp_path / "moved")
    if kind == "link":
        file.symlink_to(moved)
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.mkdir()

    assert not _is_found(tmp_path / "cache", raw)
    assert moved.read_bytes()


def test_a_place_that_takes_no_files_costs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")

    for _ in range(3):
        assert not _is_found(tmp_path / "cache", _block(1))


def test_files_of_killed_recorders_are_removed_with_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "cache"
    directory.mkdir()
    (directory / "half.123").write_bytes(b"half")
    os.utime(directory / "half.123", (1, 1))
    monkeypatch.setattr(block_cache, "_MOST_FILES", 4)

    for seed in range(10):
        BlockCache(str(directory), KEY).compress(_block(seed))

    assert len(list(directory.iterdir())) <= 5
    assert not (directory / "half.123").exists()


def test_the_least_recently_used_files_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "cache"
    used = _filled(directory, _block(0))
    monkeypatch.setattr(block_cache, "_MOST", 3 * used.stat().st_size)
    for seed in range(1, 5):
        for _ in range(2):
            BlockCache(str(directory), KEY).compress(_block(seed))
        assert _is_found(directory, _block(0))

    assert sum(each.stat().st_size for each in directory.iterdir()) <= 4 * used.stat().st_size


@pytest.mark.slow
def test_a_recording_is_the_same_with_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three recordings of a program that imports 4 MB of code, and one with damaged files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    work = tmp_path / "work"  # the importer lists it: nothing else is written there
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "large.py").write_text(f"DATA = '{random.Random(1).randbytes(2 * PIECE).hex()}'\n")
    (work / "program.py").write_text("import large\nprint(len(large.DATA))\n")
    subprocess.run([sys.executable, "-c", "import large"], check=True, timeout=60)
    worlds = []
    for number in range(4):
        if number == 3:
            for file in (tmp_path / "cache" / "replaydbg" / "world").iterdir():
                file.write_bytes(b"x" * 1000)
        path = record(["program.py"], output=tmp_path / f"{number}.rdbg").path
        with open_recording(path) as recording:
            # The first block has the time at which the log was begun.
            worlds.append(recording.section("world")[PIECE:])
            assert not recording.problems

    assert len(worlds[0]) > PIECE
    assert worlds[0] == worlds[1] == worlds[2] == worlds[3]
    assert any(each.stat().st_size for each in (tmp_path / "cache" / "replaydbg" / "world").iterdir())
