"""A URL that cannot be a remote store gets one sentence, and nothing is sent or removed."""

from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry

from replaydbg.cli.main import main
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


def test_memory_under_another_name(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(_registry, "mine", MemoryFileSystem)

    assert main(["push", "run-1", "mine://x"]) == 2
    assert "mine://x cannot be a remote store: what is in memory is lost" in capsys.readouterr().err
