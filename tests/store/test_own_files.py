"""Files in a store may have been put there by somebody else: no link is followed, nothing is waited for or believed."""

from __future__ import annotations

import os
import sqlite3
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from replaydbg.cli.main import main
from replaydbg.store.catalog import DIRECTORY, FILE, MARKED_AS
from replaydbg.store.marked import marked, unmarked
from replaydbg.store.own_files import OwnFiles
from tests.harness.build import example, header_json


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with one recording, which has been listed and tagged."""
    directory = tmp_path / "store"
    directory.mkdir()
    example().write(directory, "run-1")
    monkeypatch.setenv("REPLAYDBG_STORE", str(directory))
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert main(["ls"]) == main(["tag", "run-1", "slow"]) == 0
    return directory


def change_catalog(store: Path, statement: str, *values: object, is_marked: bool = True) -> None:
    """Execute a statement in the database; `is_marked`: as if this user's replaydbg had."""
    path = store / DIRECTORY / FILE
    with sqlite3.connect(path, isolation_level=None) as database:
        database.execute(statement, values)
    database.close()
    if is_marked:
        with sqlite3.connect(path) as database:
            data = database.serialize()
        database.close()
        path.write_bytes(marked(data, MARKED_AS) or b"")


def linked(path: Path, target: Path) -> None:
    path.unlink()
    path.symlink_to(target)


def test_a_link_in_the_place_of_the_catalog(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "mine.sqlite"
    with sqlite3.connect(mine) as database:
        database.execute("CREATE TABLE recordings (a)")
    database.close()
    before = mine.read_bytes()
    linked(store / DIRECTORY / FILE, mine)

    capsys.readouterr()
    assert main(["ls"]) == 0
    assert capsys.readouterr().out.startswith("run-1")
    assert mine.read_bytes() == before


def test_a_journal_beside_the_catalog_is_not_used(store: Path, tmp_path: Path) -> None:
    victim = tmp_path / "thesis.txt"
    victim.write_text("years of work")
    name = str(victim).encode()
    pages = (store / DIRECTORY / FILE).stat().st_size // 4096
    numbers = [0, 0, pages, 512, 4096]
    head = bytes.fromhex("d9d505f920a163d7") + b"".join(each.to_bytes(4, "big") for each in numbers)
    tail = (0x40000000 // 4096 + 1).to_bytes(4, "big") + name + len(name).to_bytes(4, "big")
    tail += (sum(name) & 0xFFFFFFFF).to_bytes(4, "big") + bytes.fromhex("d9d505f920a163d7")
    (store / DIRECTORY / f"{FILE}-journal").write_bytes(head.ljust(512, b"\0") + tail)

    assert main(["ls", "--json"]) == 0
    assert victim.read_text() == "years of work"


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_a_link_in_the_place_of_tags(store: Path, tmp_path: Path, kind: str) -> None:
    (tags,) = (store / ".tags").glob("[0-9a-f]*")
    other = tmp_path / "other"
    other.mkdir()
    (other / tags.name).write_text("mine")
    if kind == "file":
        linked(tags, other / tags.name)
    else:
        (store / ".tags").rename(store / "tags")
        (store / ".tags").symlink_to(other)

    assert main(["tag", "run-1", "fast"]) != 0
    assert main(["tag", "run-1", "--remove", "slow"]) != 0
    assert [path.read_text() for path in other.iterdir()] == ["mine"]


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_not_waited_for(store: Path, make: Callable[[Path], None]) -> None:
    for each in (next((store / ".tags").glob("[0-9a-f]*")), store / DIRECTORY / FILE):
        each.unlink()
        make(each)

    assert main(["ls"]) == 0
    assert main(["gc", "--recordings", "--keep", "pinned"]) == 1


@pytest.mark.parametrize("content", ["", "{}", '{"name": "run-1"}', '{"tags": []}', "[1]", "{", None])
def test_what_is_pinned_is_unknown_if_tags_cannot_be_read(
    store: Path, capsys: pytest.CaptureFixture[str], content: str | None
) -> None:
    """Also if nothing is left in the file, as after a power cut, or the whole directory is something else."""
    (tags,) = (store / ".tags").glob("[0-9a-f]*")
    if content is None:
        tags = store / ".tags"
        tags.rename(store / "tags")
    tags.write_text(content or "")
    capsys.readouterr()

    assert main(["gc", "--recordings", "--keep", "pinned"]) == 1
    assert f"{str(tags)!r}: no recording was removed." in capsys.readouterr().err
    assert (store / "run-1.rdbg").exists()
    assert main(["tag", "run-1", "fast"]) == 1
    assert main(["ls"]) == 0


def test_tags_that_are_a_directory_are_named(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tags,) = (store / ".tags").glob("[0-9a-f]*")
    tags.unlink()
    tags.mkdir()
    capsys.readouterr()

    assert main(["tag", "run-1", "pinned"]) == 1
    assert f"Cannot read the tags in {str(tags)!r}: no tag was changed" in capsys.readouterr().err


def test_tags_are_on_the_disk_before_they_count(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(fd: int) -> None:
        done.append("directory" if Path(f"/proc/self/fd/{fd}").is_dir() else "file")
        fsync(fd)

    def noted_replace(*words: object, **options: object) -> None:
        if words[1] != FILE:  # the catalog can be made again
            done.append("name")
        replace(*words, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)

    assert main(["tag", "run-1", "pinned"]) == 0
    assert done == ["file", "name", "directory"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE recordings SET exception = NULL",
        "UPDATE recordings SET path = -1",
        "UPDATE recordings SET size = x'00'",
        "UPDATE recordings SET line = char(27) || ']0;x'",
        "UPDATE recordings SET name = x'ff'",
        "UPDATE recordings SET run = '../../mine'",
        "UPDATE recordings SET run = 'RUN'",
        "UPDATE recordings SET path = '/etc/passwd'",
        "CREATE TRIGGER t AFTER DELETE ON directory BEGIN UPDATE recordings SET line = 'x'; END",
        "CREATE VIEW v AS SELECT 1",
        "DROP TABLE directory",
        "PRAGMA user_version = 7",
    ],
)
@pytest.mark.parametrize("words", [["ls"], ["ls", "--json"], ["ls", "--exception", "X"]])
def test_a_changed_catalog_is_made_anew(
    store: Path, capsys: pytest.CaptureFixture[str], statement: str, words: list[str]
) -> None:
    main(["tag", "run-1", "--remove", "slow"])
    capsys.readouterr()
    assert main(words) == 0
    expected = capsys.readouterr()
    change_catalog(store, statement)

    assert main(words) == 0
    assert capsys.readouterr() == expected


@pytest.mark.parametrize(
    "values",
    [
        "created = 'yesterday'",
        "created = '1999-01-01T00:00:00Z'",
        "command = '{'",
        "command = '[\"/bin/true\"]', line = replace(line, 'prog', 'gorp')",
        "status = 1, events = -5, seconds = 1e300, validity = 'damaged'",
    ],
)
def test_nothing_is_believed_that_somebody_else_wrote(
    store: Path, capsys: pytest.CaptureFixture[str], values: str
) -> None:
    """Also values that a recording can have: they decide what `gc` removes."""
    for words in (["ls"], ["ls", "--json"], ["gc", "--recordings", "--keep", "days 9999", "--dry-run"]):
        capsys.readouterr()
        assert main(words) == 0
        expected = capsys.readouterr()
        change_catalog(store, f"UPDATE recordings SET {values}", is_marked=False)

        assert main(words) == 0
        assert capsys.readouterr() == expected


def test_a_damaged_byte_of_the_catalog_is_noticed(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = store / DIRECTORY / FILE
    capsys.readouterr()
    assert main(["ls", "--json"]) == 0
    expected = capsys.readouterr()
    data, created = path.read_bytes(), header_json()["created"].encode()
    assert created in data
    path.write_bytes(data.replace(created, b"1" + created[1:]))

    assert main(["ls", "--json"]) == 0
    assert capsys.readouterr() == expected


def test_without_a_key_no_catalog_is_believed(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = store / DIRECTORY / FILE
    data = path.read_bytes()
    assert unmarked(data, MARKED_AS) == data[:-32]
    assert unmarked(data, b"other") is None
    monkeypatch.setattr("replaydbg.store.marked.own_key", lambda: None)

    assert unmarked(data, MARKED_AS) is None
    assert main(["ls"]) == 0
    assert path.read_bytes() == data


def test_the_command_of_a_row_may_be_anything(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("[" * 100_000, "[1]", "{}", "[", "[" + "9" * 5000 + "]", "\ud800"):
        change_catalog(store, "UPDATE recordings SET command = ?", command.encode("utf-8", "surrogatepass"))
        for words in (["ls"], ["ls", "--json"], ["ls", "--sort", "command"], ["ls", "--command", "zz"]):
            assert main(words) == 0


@pytest.mark.parametrize("is_absolute", [False, True])
@pytest.mark.parametrize("words", [["gc", "--recordings", "--keep", "gigabytes 0"], ["rm", "run-1"]])
def test_no_file_elsewhere_is_removed(store: Path, tmp_path: Path, is_absolute: bool, words: list[str]) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_text("precious")
    change_catalog(store, "UPDATE recordings SET run = ?", str(victim) if is_absolute else "../../victim.txt")

    assert main(words) == 0
    assert not (store / "run-1.rdbg").exists()
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/a", "../a", "a\0"])
def test_a_name_that_is_not_that_of_a_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").write_text("mine")
    files = OwnFiles(tmp_path / "own")
    files.write("b", b"")

    with pytest.raises(OSError, match="is not the name"):
        files.read(name, 10)
    with pytest.raises(OSError, match="is not the name"):
        files.write(name, b"")
    with pytest.raises(OSError, match="is not the name"):
        files.remove(name)
    with pytest.raises(OSError, match="is not the name"), files.locked(name):
        pass
    assert (tmp_path / "a").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (".catalog/collector", ["gc", "--recordings", "--keep", "last"]),
        (".tags/.lock", ["tag", "run-1", "fast"]),
    ],
)
def test_a_refusal_names_the_store(
    store: Path, capsys: pytest.CaptureFixture[str], name: str, words: list[str]
) -> None:
    (store / name).unlink(missing_ok=True)
    (store / name).mkdir()

    assert main(words) == 1
    assert capsys.readouterr().err == f"replaydbg: The system refused {str(store)!r}: Is a directory.\n"


def test_a_name_that_is_no_unicode(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example().write(store, "odd").rename(os.fsdecode(os.fsencode(store) + b"/\xff.rdbg"))

    for words in (["ls"], ["ls", "--json"], ["ls"], ["gc", "--recordings", "--keep", "last", "--dry-run"]):
        capsys.readouterr()
        assert main(words) == 0
        assert "\\udcff" in capsys.readouterr().out


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = OwnFiles(tmp_path / "own")
    assert files.read("a", 100) is None and files.names() == []
    files.write("a", b"one")

    def fail(*_: object, **__: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="full"):
            files.write("a", b"two")
    assert files.read("a", 3) == b"one"
    assert [path.name for path in (tmp_path / "own").iterdir()] == ["a"]
    with pytest.raises(OSError, match="too long"):
        files.read("a", 2)


def test_a_small_file_takes_little_memory_whatever_the_limit(tmp_path: Path) -> None:
    files = OwnFiles(tmp_path / "own")
    files.write("a", b"one")
    tracemalloc.start()
    try:
        assert files.read("a", 1 << 30) == b"one"
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_lock_is_waited_for_and_given_up(tmp_path: Path) -> None:
    files = OwnFiles(tmp_path / "own")
    with files.locked("lock") as first, files.locked("lock", seconds=0.05) as second:
        assert (first, second) == (True, False)
    with files.locked("lock") as third:
        assert third
