"""The cache of pieces: it believes no file, and removes what was used least recently."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from replaydbg.store.piece_cache import CacheFull, PieceCache, name_of_piece


def size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def put(cache: PieceCache, *pieces: bytes) -> list[str]:
    names = list(map(name_of_piece, pieces))
    cache.put(dict(zip(names, pieces, strict=True)))
    return names


def test_what_was_used_least_recently_is_removed(tmp_path: Path) -> None:
    cache = PieceCache(tmp_path, 100_000)
    names = []
    for number in range(20):
        names += put(cache, bytes([number]) * 10_000)
        os.utime(cache.path_of(names[-1]), (number, number))
        cache.read(names[0])

    assert size_of(tmp_path) <= 100_000
    assert cache.read(names[-1]) == bytes([19]) * 10_000
    assert cache.read(names[0]) == bytes(10_000), "it was used all the time"
    assert cache.read(names[1]) is None


def test_others_that_fill_it_are_noticed(tmp_path: Path) -> None:
    first, second = PieceCache(tmp_path, 100_000), PieceCache(tmp_path, 100_000)

    for number in range(40):
        put(first if number % 2 else second, bytes([number]) * 5_000)

    assert size_of(tmp_path) <= 100_000


def test_a_file_with_other_bytes_is_no_piece(tmp_path: Path) -> None:
    cache = PieceCache(tmp_path, 1 << 20)
    (name,) = put(cache, b"right")

    cache.path_of(name).write_bytes(b"wrong")
    assert cache.read(name) is None
    put(cache, b"right")
    assert cache.read(name) == b"right"


def test_a_link_is_no_piece(tmp_path: Path) -> None:
    cache = PieceCache(tmp_path / "cache", 1 << 20)
    (tmp_path / "target").write_bytes(b"right")
    path = cache.path_of(name_of_piece(b"right"))
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "target")

    assert cache.read(path.name) is None
    assert (tmp_path / "target").read_bytes() == b"right"


def test_a_piece_under_another_name_is_not_taken(tmp_path: Path) -> None:
    cache = PieceCache(tmp_path, 1 << 20)

    cache.put({name_of_piece(b"right"): b"wrong"})

    assert size_of(tmp_path) == 0


def test_more_than_the_limit_is_refused(tmp_path: Path) -> None:
    cache = PieceCache(tmp_path, 1_000)
    put(cache, b"small")

    with pytest.raises(CacheFull, match=r"is full: 2,0\d\d bytes are needed, and the limit is 1,000"):
        put(cache, b"x" * 1_500, b"y" * 500)

    assert size_of(tmp_path) <= 1_000
    put(cache, b"after")
    assert cache.read(name_of_piece(b"after")) == b"after"


@pytest.mark.parametrize("name", ["", "..", "../" * 21 + "x", "A" * 64, "0" * 63])
def test_what_is_not_the_name_of_a_piece(tmp_path: Path, name: str) -> None:
    with pytest.raises(CacheFull, match="is not the name of a piece"):
        PieceCache(tmp_path, 1_000).path_of(name)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(CacheFull, match="cannot be written: Not a directory"):
        put(PieceCache(tmp_path / "file" / "cache", 1_000), b"right")


def test_several_processes_use_it_at_once(tmp_path: Path) -> None:
    code = """if True:
        import sys
        from pathlib import Path
        from replaydbg.store.piece_cache import PieceCache, name_of_piece
        cache = PieceCache(Path(sys.argv[1]), 200_000)
        for number in range(150):
            data = bytes([number]) * 5_000
            cache.put({name_of_piece(data): data})
            assert cache.read(name_of_piece(data)) in (data, None)
    """
    processes = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) for _ in range(3)]

    assert [each.wait(60) for each in processes] == [0, 0, 0]
    assert size_of(tmp_path) <= 200_000 * 1.1
    assert not list(tmp_path.rglob(".*"))
