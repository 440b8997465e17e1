"""`ls` filters and sorts, `tag` gives recordings words, and `verify` leaves what it has found."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from replaydbg.cli.main import main
from tests.harness.build import example, header_json

RUNS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "run-1": ({"created": "2026-01-02T00:00:00Z", "commit": "ab" * 20}, {"status": 0, "seconds": 3.0}),
    "run-2": ({"created": "2026-01-03T00:00:00Z", "argv": ["a", "b c"]}, {"status": 1, "exception": "app.Lost"}),
    "run-3": ({"created": "2026-01-04T00:00:00Z", "commit": "cd" * 20}, {"status": -9, "seconds": 1.0}),
}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with recordings of three runs."""
    directory = tmp_path / "store"
    directory.mkdir()
    for name, (header, end) in RUNS.items():
        made = example()
        made.header = header_json(name=name, **header)
        made.end |= end
        made.write(directory, name)
    monkeypatch.setenv("REPLAYDBG_STORE", str(directory))
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.chdir(tmp_path)
    return directory


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["ls", *words]) == 0
    return [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        ("", "123"),
        ("--reverse", "321"),
        ("--limit 2", "23"),
        ("--sort time", "321"),
        ("--sort ended --reverse", "213"),
        ("--failed", "23"),
        ("--passed", "1"),
        ("--exception Lost", "2"),
        ("--exception other.Lost", "2"),
        ("--exception ValueError", ""),
        ("--command=--fast", "13"),
        ("--command 'b c'", "2"),
        ("--commit CDCD", "3"),
        ("--since 2026-01-03T00:00:00+00:00", "23"),
        ("--until 2026-01-03T00:00:00+00:00", "1"),
        ("--since 1d", ""),
        ("--validity unchecked", "123"),
        ("--validity sound", ""),
    ],
)
def test_ls_filters_and_sorts(store: Path, capsys: pytest.CaptureFixture[str], words: str, numbers: str) -> None:
    assert "".join(name[-1] for name in listed(capsys, *shlex.split(words))) == numbers


@pytest.mark.parametrize(
    "words", [("--since", "yesterday"), ("--limit", "0"), ("--tag", "a b"), ("--until", "99999999w")]
)
def test_bad_words_get_one_sentence(store: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    assert main(["ls", *words]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_tags(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tag", "run-2", "slow", "pinned"]) == 0
    assert main(["tag", "latest", "slow"]) == 0
    capsys.readouterr()
    assert main(["tag", "run-2", "--remove", "pinned", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tags"] == ["slow"]
    assert main(["tag", "run-2"]) == 0
    assert capsys.readouterr().out == "run-2: slow\n"

    assert listed(capsys, "--tag", "slow") == ["run-2", "run-3"]
    assert main(["ls"]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith(" [slow]")

    assert main(["rm", "run-3"]) == 0
    example().write(store, "run-3")  # of the same name
    assert listed(capsys, "--tag", "slow") == ["run-2"]


def test_a_recording_has_none_of_the_tags_of_an_earlier_one(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tag", "run-3", "slow"]) == 0
    made = example()
    made.header = header_json(name="run-3", created="2026-01-05T00:00:00Z")
    made.write(store, "run-3")
    capsys.readouterr()

    assert listed(capsys, "--tag", "slow") == []


@pytest.mark.parametrize(
    "words", [("run-9", "x"), ("run-1", "a/b"), ("run-1", "../x"), ("run-1", *map(str, range(60)))]
)
def test_bad_tags_get_one_sentence(store: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    assert main(["tag", *words]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_verify_leaves_what_it_has_found(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = (store / "run-2.rdbg").read_bytes()
    (store / "run-2.rdbg").write_bytes(data[:-300] + bytes(10) + data[-290:])
    example().write_live(store, "run-4")
    for name in ("run-1", "run-2", "run-4"):
        main(["verify", name])
    capsys.readouterr()

    assert main(["ls", "--json"]) == 0
    facts: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["recordings"]
    assert [each["validity"] for each in facts] == ["sound", "damaged", "unchecked", "cut"]
    assert facts[0]["checked"]
    assert listed(capsys, "--validity", "damaged") == ["run-2"]
