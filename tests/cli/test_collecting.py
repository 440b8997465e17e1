"""`gc --recordings` removes what no rule keeps, says why the rest stays, and takes nothing from a reader."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from replaydbg.cli.main import main
from replaydbg.debugger import Session
from replaydbg.errors import NotARecording, UsageError
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.shared import DIRECTORY as BLOCKS
from replaydbg.store.catalog import Catalog, CatalogRow
from replaydbg.store.collecting import collect as collect_all
from replaydbg.store.collecting import only_collector
from replaydbg.store.directory import Store
from replaydbg.store.retention import Decision
from replaydbg.store.tags import TagsUnreadable
from tests.harness.build import example, header_json, write_group_of
from tests.harness.log_writer import log_writer


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with four recordings of one program, the last of which has no end, and a group."""
    directory = tmp_path / "store"
    directory.mkdir()
    for number in (1, 2, 3):
        made = example()
        made.header = header_json(name=f"run-{number}", created=f"2026-01-0{number}T00:00:00Z")
        made.write(directory, f"run-{number}")
    example().write_live(directory, "run-4")
    monkeypatch.setenv("REPLAYDBG_STORE", str(directory))
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.chdir(tmp_path)
    return directory


def names(store: Path) -> list[str]:
    return [each.name for each in Store(store).list()]


def collect(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(["gc", "--recordings", *words])
    return code, capsys.readouterr().out


def test_each_decision_has_its_rule(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tag", "run-2", "pinned"]) == 0
    capsys.readouterr()
    code, out = collect(capsys, "--keep", "pinned", "--keep", "last", "--dry-run")

    rules = [line.split("\t")[::2] for line in out.splitlines()]
    assert (code, rules) == (
        0,
        [["run-1", "remove"], ["run-2", "pinned"], ["run-3", "last"], ["run-4", "not sealed"]],
    )
    assert names(store) == ["run-1", "run-2", "run-3", "run-4"]


def test_a_pinned_recording_that_became_unreadable_stays(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tag", "run-1", "pinned"]) == 0
    (store / "run-1.rdbg").write_bytes(b"nothing")
    capsys.readouterr()

    assert collect(capsys, "--keep", "pinned")[0] == 0
    assert names(store) == ["run-1", "run-4"]


def test_what_no_rule_keeps_is_removed(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = collect(capsys, "--keep", "last")

    assert code == 0
    assert out.startswith("Removed 2 recordings (")
    assert names(store) == ["run-3", "run-4"]


@pytest.mark.parametrize("options", [["--dry-run"], []])
def test_recordings_of_the_future_are_named(
    store: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    made = example()
    made.header = header_json(name="run-2", created="9999-01-01T00:00:00Z")
    made.write(store, "run-2")

    assert main(["gc", "--recordings", "--keep", "last", *options]) == 0

    expected = "These recordings have a time in the future, so rules take them for the newest: run-2.\n"
    assert capsys.readouterr().err == expected
    assert options or names(store) == ["run-2", "run-4"]


def damage(path: Path) -> None:
    """Change a byte in the middle: the recording opens, and nobody knows that it is damaged."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.parametrize("options", [["--dry-run"], []])
def test_a_damaged_recording_takes_no_sound_ones_place(
    store: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    damage(store / "run-3.rdbg")
    before = (store / ".catalog").exists() and (store / ".catalog" / "recordings.sqlite").read_bytes()

    code, out = collect(capsys, "--keep", "last", *options)

    assert code == 0
    if options:
        assert [line.split("\t")[::2] for line in out.splitlines()][1:3] == [["run-2", "last"], ["run-3", "remove"]]
        main(["ls", "--json", "--validity", "damaged"])
        assert json.loads(capsys.readouterr().out)["recordings"] == [] and not before
    else:
        assert names(store) == ["run-2", "run-4"]


def test_a_damaged_group_takes_no_sound_ones_place(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    group = write_group_of(store, "run-5", 2, created="2026-01-05T00:00:00Z")
    damage(group / "2.rdbg")

    assert collect(capsys, "--keep", "last")[0] == 0
    assert names(store) == ["run-3", "run-4"]


def test_what_was_verified_is_not_read_again(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert collect(capsys, "--keep", "last")[0] == 0
    main(["ls", "--json", "--validity", "sound"])
    assert [each["name"] for each in json.loads(capsys.readouterr().out)["recordings"]] == ["run-3"]
    made = example()
    made.header = header_json(name="run-5", created="2026-01-01T00:00:00Z")
    made.write(store, "run-5")
    monkeypatch.setattr("replaydbg.cli.recordings.gc.verify_row", lambda row: pytest.fail(row.name))

    assert collect(capsys, "--keep", "last")[0] == 0
    assert names(store) == ["run-3", "run-4"]


def test_nothing_is_removed_for_a_recording_that_cannot_be_read(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> None:
        raise NotARecording("run-3", "it cannot be read (Input/output error)") from OSError(5, "Input/output error")

    monkeypatch.setattr("replaydbg.store.verifying.open_recording", fails)

    assert main(["gc", "--recordings", "--keep", "last"]) == 1
    assert "Input/output error" in capsys.readouterr().err
    assert len(names(store)) == 4


def test_the_rules_of_the_settings(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPLAYDBG_KEEP", "pinned, first")
    code, out = collect(capsys, "--json")

    data: dict[str, Any] = json.loads(out)
    assert code == 0
    assert [each["name"] for each in data["removed"]] == ["run-2", "run-3"]
    assert names(store) == ["run-1", "run-4"]


def test_a_recording_that_is_read_stays(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_recording(store / "run-1.rdbg") as reading:
        code, out = collect(capsys, "--keep", "last")
        assert len(list(reading.events())) > 0

    assert code == 1
    assert "Not removed: run-1 (another replaydbg command has it open)." in out
    assert names(store) == ["run-1", "run-3", "run-4"]


@pytest.mark.parametrize(
    "step", ["replaydbg.cli.common.opening.warn_if_foreign", "replaydbg.debugger.session.load_index"]
)
def test_a_recording_that_is_being_opened_stays(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    found: list[tuple[int, str]] = []

    def collecting(*_: object, **__: object) -> None:
        found.append(collect(capsys, "--keep", "last"))
        raise UsageError("That is enough.")

    monkeypatch.setattr(step, collecting)

    assert main(["debug", "-q", "run-1"]) == 2
    assert [code for code, _ in found] == [1]
    assert "Not removed: run-1 (another replaydbg command has it open)." in found[0][1]
    assert names(store) == ["run-1", "run-3", "run-4"]


def test_a_session_holds_what_it_opens(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def collecting(_: Path) -> None:
        assert main(["gc", "--recordings", "--keep", "last"]) == 1
        raise UsageError("That is enough.")

    monkeypatch.setattr("replaydbg.debugger.session.load_index", collecting)

    with pytest.raises(UsageError, match="enough"):
        Session(store / "run-1.rdbg")
    assert "run-1" in names(store)


def test_a_group_with_a_live_recording_stays(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (store / "run-2.rdbg").unlink()
    group = write_group_of(store, "run-2", 1, created="2026-01-02T00:00:00Z")
    child = example().write_live(group, "2")
    code, _ = collect(capsys, "--keep", "last")

    assert code == 0
    assert names(store) == ["run-2", "run-3", "run-4"]
    shutil.rmtree(child)
    assert collect(capsys, "--keep", "last")[0] == 0
    assert names(store) == ["run-3", "run-4"]


def test_a_program_that_began_after_the_decision_is_left(store: Path) -> None:
    (row,) = (each for each in Catalog(Store(store), lambda _: "").rows() if each.name == "run-4")
    with log_writer(store / "run-4.rdbg-live"):
        (found,) = collect_all(Store(store), [Decision(row, "")], lambda _: False)

    assert found.why_not == "one of its processes is still being recorded"


def test_a_recording_that_becomes_pinned_meanwhile_stays(store: Path) -> None:
    rows = Catalog(Store(store), lambda _: "").rows()
    found = list(collect_all(Store(store), [Decision(row, "") for row in rows[:2]], lambda row: row.name == "run-2"))

    assert [(each.name, each.why_not) for each in found] == [("run-1", ""), ("run-2", "it has been pinned")]


@pytest.mark.parametrize("content", ['{"run', '{"tags": 1}', "[]"])
def test_tags_that_cannot_be_read_remove_nothing(store: Path, capsys: pytest.CaptureFixture[str], content: str) -> None:
    main(["tag", "run-2", "pinned"])
    (tags,) = (store / ".tags").glob("[0-9a-f]*")
    tags.write_text(content)
    assert main(["gc", "--recordings", "--keep", "pinned", "--keep", "last"]) == 1
    assert f"Cannot read the tags in '{tags}': no recording was removed. Restore the file." in capsys.readouterr().err
    assert len(names(store)) == 4


def test_a_directory_of_tags_that_cannot_be_read_removes_nothing(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (store / ".tags").write_text("a file is where the directory should be")

    assert main(["gc", "--recordings", "--keep", "pinned", "--keep", "last"]) == 1
    assert capsys.readouterr().err == (
        f"replaydbg: Cannot read the directory of all tags, '{store}/.tags': no recording was removed. Restore it. If "
        "you delete it, all recordings lose their tags, also `pinned`.\n"
    )
    assert len(names(store)) == 4


def test_tags_that_become_unreadable_meanwhile_keep_the_recording(store: Path) -> None:
    def unreadable_for_the_second(row: CatalogRow) -> bool:
        if row.name == "run-2":
            raise TagsUnreadable("tags", "no recording was removed")
        return False

    rows = Catalog(Store(store), lambda _: "").rows()
    found = list(collect_all(Store(store), [Decision(row, "") for row in rows[:2]], unreadable_for_the_second))

    assert [(each.name, each.why_not) for each in found] == [
        ("run-1", ""),
        ("run-2", "the tags in 'tags' cannot be read"),
    ]


def test_what_is_no_recording_stays(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (store / "notes.rdbg").write_text("my notes")
    (store / "mine.rdbg").mkdir()
    (store / "mine.rdbg" / "log").write_text("mine")

    assert collect(capsys, "--keep", "gigabytes 0")[0] == 0
    assert (store / "notes.rdbg").read_text() == "my notes"
    assert (store / "mine.rdbg" / "log").exists()


def test_what_a_killed_collector_left_is_removed(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_group_of(store, "run-5", 2).rename(store / ".removed-run-5.rdbgs-123")

    assert collect(capsys, "--keep", "first", "--keep", "last")[0] == 0
    assert not (store / ".removed-run-5.rdbgs-123").exists()


def test_a_dry_run_writes_nothing(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPLAYDBG_STORE", str(store / "none"))
    assert collect(capsys, "--keep", "last", "--dry-run")[0] == 0
    assert not (store / "none").exists()


def _block(store: Path) -> Path:
    """Return a block of the store that no recording needs, and that is not new."""
    path = store / BLOCKS / ("ab" * 16)
    path.parent.mkdir(exist_ok=True)
    path.touch()
    os.utime(path, (0, 0))
    return path


@pytest.mark.parametrize("words", [[], ["--recordings", "--keep", "last"]])
def test_room_is_made_on_a_full_disk(store: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    """No file can be written, and none can be made."""
    block = _block(store)
    (store / BLOCKS / ".cleared").symlink_to("/dev/full")

    assert main(["gc", *words]) == 0
    assert not block.exists()

    block = _block(store)
    shutil.rmtree(store / ".catalog", ignore_errors=True)
    (store / BLOCKS / ".sealing").unlink()
    real = os.open

    def full(path: Any, flags: int, *mode: int, **options: Any) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        return real(path, flags, *mode, **options)

    monkeypatch.setattr(os, "open", full)
    before = names(store)

    assert main(["gc", *words]) == 0
    assert not block.exists()
    assert names(store) == (["run-3", "run-4"] if words else before)


def test_two_collectors_at_once(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with only_collector(Store(store)):
        assert main(["gc", "--recordings", "--keep", "last"]) == 2
    assert "Another `gc --recordings` is running" in capsys.readouterr().err
    assert len(names(store)) == 4


def test_a_project_cannot_say_what_is_removed(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (store.parent / "pyproject.toml").write_text('[tool.replaydbg]\nkeep = ["days 0"]\n')

    assert main(["gc", "--recordings"]) == 2
    assert "sets 'keep'; only REPLAYDBG_KEEP or" in capsys.readouterr().err
    assert len(names(store)) == 4


@pytest.mark.parametrize(
    "words",
    [("--recordings",), ("--recordings", "--keep", "x"), ("--dry-run",), ("--recordings", "dir", "--keep", "last")],
)
def test_bad_words_get_one_sentence(store: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    assert main(["gc", *words]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert len(names(store)) == 4
