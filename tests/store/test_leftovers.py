"""What killed processes have left of unfinished files is removed, and nothing else is."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from replaydbg.cli.common.refused import refused
from replaydbg.cli.main import main
from replaydbg.store.leftovers import remove_leftovers, remove_leftovers_of, working_directory
from tests.harness.build import example


@pytest.fixture(scope="module")
def gone() -> int:
    """The id of a process that has ended."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def make(path: Path, *, days: float = 2.0) -> Path:
    """Make a directory with a file in it, as old as that."""
    path.mkdir()
    (path / "content").write_text("x")
    old = time.time() - days * 24 * 3600
    os.utime(path, (old, old))
    return path


LEFT = [".run-5.rdbgs.{}.partial", ".g.tar.{}.partial", ".g.tar.{}.partial.3.rdbg", ".replaydbg-{}-abc", ".pulled-{}"]


@pytest.mark.parametrize("name", LEFT)
def test_what_a_killed_process_left_is_removed(tmp_path: Path, gone: int, name: str) -> None:
    left, own = make(tmp_path / name.format(gone)), make(tmp_path / name.format(os.getpid()))

    remove_leftovers(tmp_path)

    assert (left.exists(), own.exists()) == (False, True)


@pytest.mark.parametrize("name", LEFT)
def test_what_is_not_a_day_old_stays(tmp_path: Path, gone: int, name: str) -> None:
    path = make(tmp_path / name.format(gone), days=0.9)

    remove_leftovers(tmp_path)

    assert path.exists()


def test_a_file_is_removed_as_a_directory_is(tmp_path: Path, gone: int) -> None:
    path = tmp_path / f".g.tar.{gone}.partial"
    path.write_text("x")
    os.utime(path, (0, 0))

    remove_leftovers(tmp_path)

    assert not path.exists()


@pytest.mark.parametrize("name", [".partial", ".1.partial", "run-5.{}.partial", ".x.{}", ".pulled-{}x", ".replaydbg-x"])
def test_other_files_stay(tmp_path: Path, gone: int, name: str) -> None:
    path = make(tmp_path / name.format(gone))

    remove_leftovers(tmp_path)

    assert path.exists()


def test_a_link_is_not_followed(tmp_path: Path, gone: int) -> None:
    mine = make(tmp_path / "mine")
    link = tmp_path / f".x.{gone}.partial"
    link.symlink_to(mine)
    os.utime(link, (0, 0), follow_symlinks=False)

    remove_leftovers(tmp_path)

    assert (mine / "content").exists()


def test_an_empty_group_is_removed_once_it_is_old(tmp_path: Path) -> None:
    old, young, full = (tmp_path / f"run-{number}.rdbgs" for number in (1, 2, 3))
    for each in (old, young, full):
        each.mkdir()
    (full / "notes").write_text("mine")
    for each in (old, full):
        os.utime(each, (0, 0))

    remove_leftovers(tmp_path)

    assert (old.exists(), young.exists(), full.exists()) == (False, True, True)


def test_beside_a_target_only_what_was_to_become_it_is_removed(tmp_path: Path, gone: int) -> None:
    left = make(tmp_path / f".g.tar.{gone}.partial")
    other = make(tmp_path / f".mine.{gone}.partial")

    remove_leftovers_of(tmp_path / "g.tar")

    assert (left.exists(), other.exists()) == (False, True)


def test_gc_removes_them(tmp_path: Path, gone: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLAYDBG_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "store").mkdir()
    example().write(tmp_path / "store", "run-1")
    for words in (["gc"], ["gc", "--recordings", "--keep", "last"]):
        left = make(tmp_path / "store" / f".run-5.rdbgs.{gone}.partial")

        main(words)

        assert not left.exists()
    assert (tmp_path / "store" / "run-1.rdbg").exists()


@pytest.mark.parametrize("words", [["pack", "run-1"], ["redact", "run-1"]])
def test_the_next_run_removes_them(
    tmp_path: Path, gone: int, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setenv("REPLAYDBG_STORE", str(tmp_path))
    example().write(tmp_path, "run-1")
    left = [make(tmp_path / f".copy.{gone}.partial"), make(tmp_path / f".replaydbg-{gone}-abc")]

    main([*words, "-o", str(tmp_path / "copy")])

    assert not any(each.exists() for each in left)


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("ro/.x.9112.partial", "ro/x"),
        ("/s/.run-5.rdbgs.12.partial/1.rdbg", "/s/run-5.rdbgs"),
        ("/s/..g.tar.12.partial.3.rdbg.12.partial", "/s/g.tar"),
        ("/s/.replaydbg-12-abc/draft.rdbgs/1.rdbg", "/s"),
        ("/s/.pulled-12/x", "/s"),
        ("/tmp/replaydbg-remote-12-abc/0/run-1/run-1.rdbg", "/tmp"),
        ("/home/me/.config/x.partial", "/home/me/.config/x.partial"),
        ("x", "x"),
    ],
)
def test_messages_have_the_name_that_the_user_knows(path: str, known: str) -> None:
    assert str(refused(OSError(28, "No space left on device", path))) == (
        f"The system refused {known!r}: No space left on device."
    )


@pytest.mark.parametrize("command", ["pack", "redact"])
def test_a_full_disk_is_reported_with_the_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("REPLAYDBG_STORE", str(tmp_path / "store"))
    (tmp_path / "store").mkdir()
    example().write(tmp_path / "store", "run-1")
    target, limits = tmp_path / "copy", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        code = main([command, "run-1", "-o", str(target)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert (code, capsys.readouterr().err) == (1, f"replaydbg: The system refused {str(target)!r}: File too large.\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store"]


def test_a_working_directory_has_the_process_in_its_name(tmp_path: Path) -> None:
    with working_directory(tmp_path) as folder:
        os.utime(folder, (0, 0))
        remove_leftovers(tmp_path)

        assert folder.parent == tmp_path and folder.is_dir()
    assert list(tmp_path.iterdir()) == []
