"""`gc --recordings --to URL`: what no rule keeps here is kept elsewhere."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from replaydbg.cli.main import main
from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.remote.remote_store import RemoteStore
from replaydbg.store.catalog import DIRECTORY as DIRECTORY_OF_CATALOG
from replaydbg.store.catalog import FILE
from tests.harness.build import example, header_json
from tests.remote.far import index_of, make_programs, pieces, replaydbg, url

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_programs(tmp_path)
    for program in ("program.py", "forks.py"):
        assert replaydbg(tmp_path, "record", "-q", program).status == 0
    return tmp_path


def names(folder: Path, *words: str) -> list[str]:
    return [each["name"] for each in json.loads(replaydbg(folder, "ls", "--json", *words).stdout)["recordings"]]


def test_what_no_rule_keeps_is_moved(folder: Path) -> None:
    replaydbg(folder, "tag", "run-2", "pinned")

    done = replaydbg(folder, "gc", "--recordings", "--keep", "pinned", "--to", url(folder))

    assert done.status == 0, done
    assert f"to {url(folder)}; 1 stay in {folder}/store.".encode() in done.stdout
    assert (names(folder), names(folder, url(folder))) == (["run-2"], ["run-1"])
    assert replaydbg(folder, "replay", f"{url(folder)}/run-1").status == 0


def test_to_another_directory(folder: Path) -> None:
    done = replaydbg(folder, "gc", "--recordings", "--keep", "days 0", "--to", "far")

    assert done.status == 0, done
    assert (names(folder), names(folder, url(folder))) == ([], ["run-1", "run-2"])


def test_another_recording_has_that_name_there(folder: Path) -> None:
    replaydbg(folder, "push", "run-2", url(folder), "--as", "run-1")

    assert replaydbg(folder, "gc", "--recordings", "--keep", "days 0", "--to", url(folder)).status == 0

    there = names(folder, url(folder))
    assert there[0].startswith("run-1-20")
    assert there[1:] == ["run-1", "run-2"]
    assert replaydbg(folder, "verify", f"{url(folder)}/{there[0]}").status == 0


def test_what_cannot_be_sent_stays(folder: Path) -> None:
    (folder / "far").mkdir()
    (folder / "far" / "recordings").write_text("")

    done = replaydbg(folder, "gc", "--recordings", "--keep", "days 0", "--to", url(folder))

    assert done.status == 1
    assert done.stdout.count(b"it cannot be kept elsewhere") == 2
    assert names(folder) == ["run-1", "run-2"]


def test_what_is_damaged_stays(folder: Path) -> None:
    path = folder / "store" / "run-1.rdbg"
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])

    done = replaydbg(folder, "gc", "--recordings", "--keep", "days 0", "--to", url(folder))

    assert done.status == 1, done
    assert b"Not removed: run-1 (it cannot be kept elsewhere:" in done.stdout
    assert (names(folder), names(folder, url(folder))) == (["run-1"], ["run-2"])


def test_a_dry_run_sends_nothing(folder: Path) -> None:
    assert replaydbg(folder, "gc", "--recordings", "--keep", "days 0", "--to", url(folder), "--dry-run").status == 0

    assert names(folder) == ["run-1", "run-2"]
    assert pieces(folder) == {}


def test_it_needs_recordings(folder: Path) -> None:
    refused = replaydbg(folder, "gc", "--to", url(folder))

    assert (refused.status, b"--keep, --to and --dry-run need --recordings." in refused.stderr) == (2, True)


def test_what_has_a_damaged_block_stays(folder: Path) -> None:
    (block,) = sorted((folder / "store" / DIRECTORY).iterdir(), key=lambda path: path.stat().st_size)[-1:]
    block.write_bytes(block.read_bytes()[:-1] + b"x")

    done = replaydbg(folder, "gc", "--recordings", "--keep", "days 0", "--to", url(folder))

    assert done.status == 1, done
    assert "run-1" in names(folder)


def test_a_recording_can_claim_any_time(folder: Path) -> None:
    replaydbg(folder, "push", "run-2", url(folder), "--as", "run-1")
    (folder / "store" / "run-1.rdbg").unlink()
    made = example()
    made.header = header_json(created="/../../../x")
    made.write(folder / "store", "run-1")

    done = replaydbg(folder, "gc", "--recordings", "--keep", "gigabytes 0", "--to", url(folder))

    assert done.status == 0, done
    assert sorted(path.name for path in folder.glob("far*")) == ["far"]
    assert sorted(path.name for path in (folder / "far").iterdir()) == ["pieces", "recordings"]
    assert "run-1-" in names(folder, url(folder))


def test_what_is_sent_is_what_the_recording_has(folder: Path) -> None:
    """Whatever is in the catalog: an index that nobody can read would be all that is left of it."""
    assert names(folder) == ["run-1", "run-2"]
    with sqlite3.connect(folder / "store" / DIRECTORY_OF_CATALOG / FILE) as catalog:
        catalog.execute("UPDATE recordings SET command = '{', created = 'yesterday'")
    catalog.close()

    done = replaydbg(folder, "gc", "--recordings", "--keep", "gigabytes 0", "--to", url(folder))

    assert done.status == 0, done
    for name in ("run-1", "run-2"):
        assert str(index_of(folder, name).facts["created"]).startswith("20")
        assert replaydbg(folder, "verify", f"{url(folder)}/{name}").status == 0


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with one small recording, for commands in this process."""
    (tmp_path / "store").mkdir()
    example().write(tmp_path / "store", "run-1")
    monkeypatch.setenv("REPLAYDBG_STORE", str(tmp_path / "store"))
    return tmp_path


def test_what_readers_would_refuse_stays(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "store" / "run-1.rdbg").unlink()
    made = example()
    made.end |= {"seconds": 1e300}
    made.write(here / "store", "run-1")

    assert main(["gc", "--recordings", "--keep", "gigabytes 0", "--to", url(here)]) == 1
    assert "its index has not the facts of a recording" in capsys.readouterr().out
    assert (here / "store" / "run-1.rdbg").exists()
    assert not list((here / "far").rglob("*.json"))


@pytest.mark.parametrize("how", ["cut", "lost"])
def test_what_did_not_arrive_stays(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    real = RemoteStore.create

    def create(self: RemoteStore, path: str, data: bytes) -> Any:
        return real(self, path, data[:-100]) if how == "cut" else True

    monkeypatch.setattr(RemoteStore, "create", create)

    assert main(["gc", "--recordings", "--keep", "gigabytes 0", "--to", url(here)]) == 1
    assert "Not removed: run-1 (it cannot be kept elsewhere:" in capsys.readouterr().out
    assert (here / "store" / "run-1.rdbg").exists()


def test_a_bad_index_is_one_row(folder: Path) -> None:
    replaydbg(folder, "push", "run-1", "run-2", url(folder))
    path = folder / "far" / "recordings" / "run-2.json"
    index = index_of(folder, "run-2")
    path.write_bytes(index._replace(facts=index.facts | {"command": "[" * 100_000}).encode())

    done = replaydbg(folder, "ls", url(folder))

    assert done.status == 0, done
    one, bad = done.stdout.decode().splitlines()
    assert one.startswith("run-1\t") and "program.py" in one
    assert bad.startswith("run-2\t\tunreadable\t") and "its index has not the facts of a recording" in bad
