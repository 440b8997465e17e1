"""A URL that cannot be a remote store gets one sentence, and nothing is sent or removed."""

from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry

from replaydbg.cli.main import main
from replaydbg.remote.remote_store import RemoteStore
from tests.harness.build import example

UNSUITABLE = {
    "memory://x": "memory://x cannot be a remote store: what is in memory is lost when the command ends.",
    "dir://x": "dir://x cannot be a remote store: it needs another file system, which a URL cannot name.",
    "reference://x": "reference://x cannot be a remote store: it needs another file system, which a URL cannot name.",
    "zip://x": "zip://x cannot be a remote store: the files in an archive cannot be changed.",
    "foo://x": "foo://x cannot be opened: Protocol not known: foo.",
    "ftp://me:secret@127.0.0.1:1/x": "ftp://127.0.0.1:1/x cannot be opened: Connection refused.",
}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with one recording."""
    example().write(tmp_path, "run-1")
    monkeypatch.setenv("REPLAYDBG_STORE", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("url", UNSUITABLE)
@pytest.mark.parametrize(
    "words",
    [
        "gc --recordings --keep pinned --to {}",
        "gc --recordings --keep pinned --dry-run --to {}",
        "push run-1 {}",
        "ls {}",
        "info {}/run-1",
        "rm {}/run-1",
    ],
)
def test_it_is_refused(store: Path, capsys: pytest.CaptureFixture[str], words: str, url: str) -> None:
    code = main([each.format(url) for each in words.split()])

    assert (code, capsys.readouterr()) == (2, ("", f"replaydbg: {UNSUITABLE[url]}\n"))
    assert (store / "run-1.rdbg").exists()


@pytest.mark.parametrize("words", ["push run-1 {}", "ls {}", "info {}/run-1", "rm {}/run-1", "gc {}", "pull {}/run-1"])
@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("file://rel/x", "'file://rel/x' must have an absolute path: write file:///DIRECTORY (three slashes).\n"),
        ("file://~/x", "'file://~/x' must have an absolute path: write file:///DIRECTORY (three slashes).\n"),
        ("file://localhosts/x", "'file://localhosts/x' must have an absolute path: write file:///DIRECTORY (three"),
        ("local://rel/x", "'local://rel/x' must have an absolute path: write local:///DIRECTORY (three slashes).\n"),
        ("file://me:password@/x", "'file:///x' has a user name before its path: write file:///DIRECTORY (three"),
        ("file://{here}/run-1.rdbg", "file://{here}/run-1.rdbg cannot be a remote store: '{here}/run-1.rdbg' is not"),
        ("file://{here}/run-1.rdbg/x", "file://{here}/run-1.rdbg/x cannot be a remote store: '{here}/run-1.rdbg' is"),
    ],
)
def test_a_place_of_this_machine_is_a_directory(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: str, url: str, reason: str
) -> None:
    monkeypatch.chdir(store)
    before = sorted(store.iterdir())
    url, reason = url.replace("{here}", str(store)), reason.replace("{here}", str(store))

    assert main([each.replace("{}", url) for each in words.split()]) == 2
    assert capsys.readouterr().err.startswith(f"replaydbg: {reason}")
    assert sorted(store.iterdir()) == before


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("file://", "must have an absolute path"),
        ("local://", "must have an absolute path"),
        ("file:///", "is the root directory, which cannot be a remote store"),
        ("file://localhost/", "is the root directory, which cannot be a remote store"),
    ],
)
def test_a_place_of_this_machine_has_a_path(
    store: Path, capsys: pytest.CaptureFixture[str], url: str, problem: str
) -> None:
    assert main(["push", "run-1", url]) == 2
    protocol = url.partition(":")[0]
    expected = f"replaydbg: {url!r} {problem}: write {protocol}:///DIRECTORY (three slashes).\n"
    assert capsys.readouterr() == ("", expected)


def test_what_cannot_be_read_back_is_not_removed(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index is written, and the remote store does not return it."""
    monkeypatch.setattr(RemoteStore, "read", lambda *_: None)

    code = main(["gc", "--recordings", "--keep", "gigabytes 0", "--to", str(tmp_path / "far")])

    assert (code, "run-1 cannot be read back after it was sent" in capsys.readouterr().out) == (1, True)
    assert (store / "run-1.rdbg").exists()


def test_the_host_may_be_this_one(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["push", "run-1", f"file://localhost{store}/far/"]) == 0
    assert capsys.readouterr().err.startswith(f"Sent file://{store}/far/run-1 ")
    assert (store / "far" / "recordings" / "run-1.json").exists()
    assert main(["verify", f"file://localhost{store}/far/run-1"]) == 0


def test_memory_under_another_name(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(_registry, "mine", MemoryFileSystem)

    assert main(["push", "run-1", "mine://x"]) == 2
    assert "mine://x cannot be a remote store: what is in memory is lost" in capsys.readouterr().err
