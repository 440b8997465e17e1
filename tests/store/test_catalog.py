"""The catalog has the facts about the recordings that are there, whatever happened to them, to it, or beside it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replaydbg.render.recording_text import listing_text
from replaydbg.store import catalog as module
from replaydbg.store.catalog import CUT, DAMAGED, DIRECTORY, FILE, SOUND, UNCHECKED, Catalog, CatalogRow
from replaydbg.store.directory import Store, StoredRecording
from replaydbg.store.selection import Selection
from tests.harness.build import LogBuilder, example, header_json, write_group_of

NOTED = "2026-01-02T03:04:05Z"


def write(store: Path, name: str, **header: object) -> Path:
    """Write a recording."""
    store.mkdir(exist_ok=True)
    made = example()
    made.header = header_json(name=name, **header)
    return made.write(store, name)


def catalog(store: Path) -> Catalog:
    return Catalog(Store(store), listing_text)


def fresh(store: Path) -> list[CatalogRow]:
    """Return the rows as a catalog without a file has them."""
    return [module.read_row(each) for each in Store(store).list()]


def test_the_facts(tmp_path: Path) -> None:
    write(tmp_path, "run-1", created="2026-01-02T03:04:05Z", commit="ab" * 20)
    write_group_of(tmp_path, "run-2", 2)
    (tmp_path / "broken.rdbg").write_bytes(b"nothing")
    broken, one, two = catalog(tmp_path).rows()

    assert (one.name, one.created, one.commit, one.status, one.events) == (
        "run-1",
        "2026-01-02T03:04:05Z",
        "ab" * 20,
        0,
        18,
    )
    assert (one.size, one.validity, one.processes) == ((tmp_path / "run-1.rdbg").stat().st_size, UNCHECKED, 1)
    assert (two.name, two.processes, two.path) == ("run-2", 2, str(tmp_path / "run-2.rdbgs" / "1.rdbg"))
    assert "is not a recording" in broken.problem


def test_a_recording_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1, 6):
        write(tmp_path, f"run-{number}")
    before = catalog(tmp_path).rows()
    read: list[str] = []
    monkeypatch.setattr(module, "read_row", lambda stored: read.append(stored.name))

    assert catalog(tmp_path).rows() == before
    assert read == []


@pytest.mark.parametrize("content", [b"", b"no database at all" * 100, None])
def test_a_catalog_that_is_none_is_made_anew(tmp_path: Path, content: bytes | None) -> None:
    write(tmp_path, "run-1")
    (tmp_path / DIRECTORY).mkdir()
    if content is not None:
        (tmp_path / DIRECTORY / FILE).write_bytes(content)
    else:
        with sqlite3.connect(tmp_path / DIRECTORY / FILE) as other:  # of another version
            other.execute("CREATE TABLE recordings (name)")
            other.execute("INSERT INTO recordings VALUES ('run-1')")
        other.close()

    assert [row.name for row in catalog(tmp_path).rows()] == ["run-1"]
    assert catalog(tmp_path).rows() == fresh(tmp_path)


def test_a_damaged_page_is_made_anew(tmp_path: Path) -> None:
    for number in range(1, 60):
        write(tmp_path, f"run-{number}")
    catalog(tmp_path).rows()
    data = bytearray((tmp_path / DIRECTORY / FILE).read_bytes())
    data[4096:12000] = bytes(range(256)) * 31
    (tmp_path / DIRECTORY / FILE).write_bytes(data[:12000] + data[12000:])

    assert catalog(tmp_path).rows() == fresh(tmp_path)


@pytest.mark.parametrize("is_known", [False, True])
def test_a_recording_that_is_removed_meanwhile_is_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    write(tmp_path, "run-1")
    write(tmp_path, "run-2")
    if is_known:
        catalog(tmp_path).rows()
        os.utime(tmp_path / "run-2.rdbg", (0, 0))
    read = module.read_row

    def removing(stored: StoredRecording) -> CatalogRow:
        if stored.name == "run-2":
            stored.path.unlink(missing_ok=True)
        return read(stored)

    monkeypatch.setattr(module, "read_row", removing)

    assert [line.split("\t")[0] for line in catalog(tmp_path).lines().split("\n")] == ["run-1"]
    write(tmp_path, "run-2")
    assert [row.name for row in catalog(tmp_path).rows()] == ["run-1"]


def test_numbers_that_sqlite_has_no_room_for(tmp_path: Path) -> None:
    made, log = example(), LogBuilder()
    log.crossings = (1 << 64) - 1
    made.log = log.to_bytes()
    made.write_live(tmp_path)
    for _ in range(2):
        (row,) = catalog(tmp_path).rows()
        assert (row.name, row.events) == ("run-1", (1 << 63) - 1)


def test_a_store_that_cannot_be_written_is_listed(tmp_path: Path) -> None:
    write(tmp_path, "run-1")
    (tmp_path / DIRECTORY).write_text("a file is where its directory should be")

    assert catalog(tmp_path).rows() == fresh(tmp_path)


def test_no_store_gets_no_catalog(tmp_path: Path) -> None:
    assert catalog(tmp_path / "none").rows() == []
    assert catalog(tmp_path / "none").lines() == ""
    assert not (tmp_path / "none").exists()


def test_validity_is_that_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "run-1")
    catalog(tmp_path).note_validity({"run-1": SOUND}, "2026-01-02T03:04:05Z")
    (row,) = catalog(tmp_path).rows()
    assert (row.validity, row.checked) == (SOUND, "2026-01-02T03:04:05Z")

    path.write_bytes(path.read_bytes() + b"x")
    (row,) = catalog(tmp_path).rows()
    assert (row.validity, row.checked) == (UNCHECKED, "")

    catalog(tmp_path).note_validity({"run-1": DAMAGED}, "2026-01-02T03:04:06Z")
    assert catalog(tmp_path).lines().split("\t")[2] == "damaged"


def test_a_recording_without_an_end_is_cut(tmp_path: Path) -> None:
    example().write_live(tmp_path, "run-1")
    assert [row.validity for row in catalog(tmp_path).rows()] == [CUT]


def test_a_recording_of_a_group_is_removed(tmp_path: Path) -> None:
    group = write_group_of(tmp_path, "run-1", 2)
    (before,) = catalog(tmp_path).rows()
    (group / "2.rdbg").unlink()
    (after,) = catalog(tmp_path).rows()

    assert after.size < before.size


def test_members_of_a_group_that_are_not_sealed_are_counted(tmp_path: Path) -> None:
    """The end in the listing is that of the first process only. A member can be sealed at any time, so it is read."""
    group = write_group_of(tmp_path, "run-1", 1)
    before = catalog(tmp_path).lines().split("\t")[2]
    live = example().write_live(group, "2")
    cut = Selection(validity=CUT)
    for _ in range(2):
        assert catalog(tmp_path).lines().split("\t")[2] == f"{before}, 1 not sealed"
        selected = catalog(tmp_path).selected(*cut.as_sql())
        assert [row.name for row in selected if cut.matches(row, ())] == ["run-1"]
    with sqlite3.connect(tmp_path / DIRECTORY / FILE) as database:
        assert database.execute("SELECT stamp, command FROM recordings").fetchall() == [("", "")]
    database.close()
    shutil.rmtree(live)

    assert catalog(tmp_path).lines().split("\t")[2] == before
    assert catalog(tmp_path).selected(*cut.as_sql()) == []


def test_many_recordings_are_not_looked_at_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FEW", 3)
    for number in range(1, 9):
        write(tmp_path, f"run-{number}")
    catalog(tmp_path).rows()
    os.utime(tmp_path, ns=(1, 1))  # long ago
    lines = catalog(tmp_path).lines()
    with monkeypatch.context() as patch:
        patch.setattr(Store, "files", lambda store: pytest.fail("it looked"))
        assert catalog(tmp_path).lines() == lines

    write(tmp_path, "run-9")
    assert len(catalog(tmp_path).lines().split("\n")) == 9


ACTIONS: dict[str, Callable[[Path, Random], None]] = {
    "add": lambda store, draw: _replace(store, draw),
    "group": lambda store, draw: _add_group(store, draw),
    "remove": lambda store, draw: _remove(store, draw),
    "damage": lambda store, draw: _damage(store, draw),
    "forget": lambda store, draw: shutil.rmtree(store / DIRECTORY, ignore_errors=True),
    "check": lambda store, draw: catalog(store).note_validity(
        {f"run-{draw.randint(1, 6)}": CUT}, "2026-01-02T03:04:05Z"
    ),
}


def _replace(store: Path, draw: Random) -> None:
    name = f"run-{draw.randint(1, 6)}"
    shutil.rmtree(store / f"{name}.rdbgs", ignore_errors=True)
    write(store, name, created=f"2026-01-02T03:04:{draw.randint(10, 59)}Z")


def _add_group(store: Path, draw: Random) -> None:
    name = f"run-{draw.randint(1, 6)}"
    shutil.rmtree(store / f"{name}.rdbgs", ignore_errors=True)
    (store / f"{name}.rdbg").unlink(missing_ok=True)
    write_group_of(store, name, draw.randint(1, 3))


def _remove(store: Path, draw: Random) -> None:
    for path in sorted(store.glob("run-*"))[: draw.randint(0, 2)]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _damage(store: Path, draw: Random) -> None:
    for path in sorted(store.glob("run-*.rdbg"))[:1]:
        data = path.read_bytes()
        path.write_bytes(data[: draw.randint(0, len(data))])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(0, 12))
def test_it_always_has_what_is_there(tmp_path_factory: pytest.TempPathFactory, seed: int, few: int) -> None:
    draw, store = Random(seed), tmp_path_factory.mktemp("store")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FEW", few)
        for _ in range(12):
            name = draw.choice(["add", "add", *ACTIONS])
            ACTIONS[name](store, draw)
            if draw.random() < 0.7:
                rows = catalog(store).rows()
                assert [row._replace(validity="", checked="") for row in rows] == [
                    row._replace(validity="", checked="") for row in fresh(store)
                ], name
                lines = catalog(store).lines()
                assert [line.split("\t")[0] for line in lines.split("\n") if line] == [row.name for row in rows]
    shutil.rmtree(store)
