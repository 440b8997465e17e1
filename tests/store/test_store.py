"""Recordings get names, are found by them, and settings come from their reported sources."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from replaydbg.config import find_settings, is_notice_unwanted, load_settings, parse_size
from replaydbg.errors import NoSuchRecording, UsageError
from replaydbg.store.directory import Store, live_path, sealed_path
from replaydbg.store.private import write_private


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without settings, in a directory without a project."""
    for name in ("REPLAYDBG_STORE", "REPLAYDBG_MAX_SIZE", "REPLAYDBG_QUIET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    project = tmp_path / "project" / "sub"
    project.mkdir(parents=True)
    monkeypatch.chdir(project)
    (tmp_path / "project" / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    return tmp_path


def test_names_count_up(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")

    first, second = store.create(), store.create()

    assert (first.name, second.name) == ("run-1.rdbg-live", "run-2.rdbg-live")
    assert first.is_dir()
    assert first.stat().st_mode & 0o077 == 0
    assert store.directory.stat().st_mode & 0o077 == 0


def test_a_sealed_name_is_not_given_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    (tmp_path / "run-10.rdbg").write_bytes(b"")
    (tmp_path / "mine.rdbg").write_bytes(b"")

    assert store.create().name == "run-11.rdbg-live"


def test_recorders_at_the_same_moment_get_different_names(tmp_path: Path) -> None:
    store = Store(tmp_path)

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: store.create(), range(64)))

    assert {path.name for path in made} == {f"run-{number}.rdbg-live" for number in range(1, 65)}


def test_a_number_that_was_sealed_meanwhile_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    (tmp_path / "run-1.rdbg").write_bytes(b"")
    monkeypatch.setattr(Store, "list", lambda self: [])

    assert store.create().name == "run-2.rdbg-live"
    assert not (tmp_path / "run-1.rdbg-live").exists()


def test_the_list_is_in_order_and_prefers_what_is_sealed(tmp_path: Path) -> None:
    for name in ("run-10.rdbg", "run-9.rdbg", "run-9.rdbg-live", "run-2.rdbg-live", "a.rdbg", ".run-3.rdbg.1.partial"):
        (tmp_path / name).write_bytes(b"")

    found = Store(tmp_path).list()

    assert [(stored.name, stored.is_live) for stored in found] == [
        ("a", False),
        ("run-2", True),
        ("run-9", False),
        ("run-10", False),
    ]


def test_resolving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "store")
    store.create()
    latest = store.create()
    other = tmp_path / "other.rdbg-live"
    other.mkdir()
    monkeypatch.chdir(tmp_path)

    assert store.resolve("latest") == latest
    assert store.resolve("run-1") == store.directory / "run-1.rdbg-live"
    assert store.resolve("other.rdbg-live") == Path("other.rdbg-live")
    assert store.resolve("other.rdbg") == Path("other.rdbg-live")
    for name in ("run-3", "x.rdbg", "a\0b", "/nonexistent/x.rdbg"):
        with pytest.raises(NoSuchRecording):
            store.resolve(name)
    with pytest.raises(UsageError):
        store.resolve("")


def test_an_empty_store_has_no_latest(tmp_path: Path) -> None:
    store = Store(tmp_path / "missing")

    assert store.list() == []
    with pytest.raises(NoSuchRecording, match="latest"):
        store.resolve("latest")


def test_live_and_sealed_paths_belong_together() -> None:
    live = Path("/a/run-1.rdbg-live")

    assert sealed_path(live) == Path("/a/run-1.rdbg")
    assert live_path(sealed_path(live)) == live


def test_the_defaults(home: Path) -> None:
    settings = load_settings()

    assert settings.store == home / "data" / "replaydbg" / "recordings"
    assert (settings.max_size, settings.quiet) == (0, False)
    assert {found.source for found in find_settings()} == {"the default"}


def test_each_layer_wins_over_those_below(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = home / "config" / "replaydbg" / "config.toml"
    config.parent.mkdir(parents=True)
    project = home / "project" / "pyproject.toml"

    config.write_text("max-size = '1G'\nstore = 'mine'\n")
    assert load_settings().max_size == 1 << 30
    assert load_settings().store == config.parent / "mine"
    project.write_text("[tool.replaydbg]\nmax-size = '2K'\nstore = 'recordings'\n")
    assert load_settings().max_size == 2 << 10
    assert load_settings().store == home / "project" / "recordings"
    monkeypatch.setenv("REPLAYDBG_MAX_SIZE", "3")
    assert load_settings().max_size == 3
    assert load_settings({"max_size": "4M", "store": None}).max_size == 4 << 20

    sources = {found.name: found.source for found in find_settings({"quiet": True})}
    assert sources == {
        "store": str(project),
        "max_size": "the variable REPLAYDBG_MAX_SIZE",
        "quiet": "the command line",
        "real_ids": "the default",
        "chaos": "the default",
        "on_deadlock": "the default",
        "durable": "the default",
        "checkpoint_events": "the default",
        "checkpoint_size": "the default",
        "children": "the default",
        "keep": "the default",
        "secrets": "the default",
        "secret_names": "the default",
        "secret_patterns": "the default",
        "recipients": "the default",
        "worker_cache": "the default",
        "worker_cache_size": "the default",
        "session_memory": "the default",
        "theme": "the default",
        "ascii": "the default",
        "python": "the default",
        "just_my_code": "the default",
        "my_code": "the default",
        "keymap": "the default",
        "keys": "the default",
    }


def test_an_empty_variable_is_not_set(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLAYDBG_STORE", "")

    assert load_settings().store == home / "data" / "replaydbg" / "recordings"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.replaydbg]\ncolour = 1\n", "does not know"),
        ("[tool.replaydbg]\nquiet = 'perhaps'\n", "yes or no"),
        ("[tool.replaydbg]\nmax-size = true\n", "a size is needed"),
        ("[tool.replaydbg]\nstore = 1\n", "a path is needed"),
        ("[tool.replaydbg\n", "not TOML"),
        ("[tool]\nreplaydbg = 1\n", "not a table"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(home: Path, text: str, said: str) -> None:
    (home / "project" / "pyproject.toml").write_text(text)

    with pytest.raises(UsageError, match=said) as raised:
        load_settings()
    assert "pyproject.toml" in str(raised.value)


def test_the_toml_of_others_is_not_ours_to_check(home: Path) -> None:
    (home / "project" / "pyproject.toml").write_text("[broken")

    assert load_settings().quiet is False


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("17", 17), (17, 17), ("2k", 2048), ("1.5G", None), ("2GiB", 2 << 30), ("3 MB", None)]
)
def test_sizes(text: str | int, size: int | None) -> None:
    if size is None:
        with pytest.raises(ValueError, match="size"):
            parse_size(text)
    else:
        assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "G", "-1", "\u0662x", "9" * 30])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="size"):
        parse_size(text)


def test_a_project_cannot_suppress_the_notice_about_recordings_of_others(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "project" / "pyproject.toml").write_text("[tool.replaydbg]\nquiet = true\n")
    assert load_settings().quiet
    assert not is_notice_unwanted(None)
    assert is_notice_unwanted(True)

    (home / "config" / "replaydbg").mkdir(parents=True)
    (home / "config" / "replaydbg" / "config.toml").write_text("quiet = true\n")
    assert is_notice_unwanted(None)

    monkeypatch.setenv("REPLAYDBG_QUIET", "0")
    assert not is_notice_unwanted(None)


def test_a_written_file_is_private_whatever_was_there(tmp_path: Path) -> None:
    new, old, link = tmp_path / "new", tmp_path / "old", tmp_path / "link"
    old.write_bytes(b"for all to read")
    old.chmod(0o644)
    link.symlink_to("old")

    for path in (new, old, link, Path(os.devnull)):
        write_private(path, b"data")

    assert [path.stat().st_mode & 0o777 for path in (new, old)] == [0o600, 0o600]
    assert (new.read_bytes(), old.read_bytes()) == (b"data", b"data")
    assert link.is_symlink() and Path(os.devnull).is_char_device()
    assert sorted(tmp_path.iterdir()) == [link, new, old]


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()

    for path in (tmp_path / "directory", tmp_path / "none" / "file"):
        with pytest.raises(OSError):
            write_private(path, b"data")

    assert [path.name for path in tmp_path.rglob("*")] == ["directory"]
