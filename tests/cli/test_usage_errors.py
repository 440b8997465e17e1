"""Invalid command lines: JSON for those who asked for it, and the command that was probably meant."""

import argparse
import json
from pathlib import Path

import pytest

from replaydbg.cli.main import command_module, main
from tests.harness.recording import record_file

PROGRAM = Path(__file__).parents[2] / "fixtures" / "travel" / "long_loop.py"


@pytest.mark.parametrize(
    ("words", "code", "begins"),
    [
        (["why", "--json"], 2, "replaydbg why: the following arguments are required"),
        (["bisect", "snapshots", "--json", "--wrong", "x"], 2, "replaydbg bisect: unrecognized arguments"),
        (["bisect", "--json"], 2, "replaydbg bisect: the following arguments are required: KIND"),
        (["record", "--json", "--bogus", "x.py"], 2, "replaydbg record: record has no option '--bogus'"),
        (["hunt", "--json", "--bogus", "x.py"], 2, "replaydbg hunt: hunt has no option '--bogus'"),
        (["check", "--json"], 128, "replaydbg check: the following arguments are required"),
    ],
)
def test_json_has_the_problem(words: list[str], code: int, begins: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)

    printed = capsys.readouterr()
    assert ended.value.code == code
    error = json.loads(printed.out)["error"]
    assert error["slug"] == "usage"
    assert error["problem"].startswith(begins)
    assert printed.err.startswith("usage: ")


@pytest.mark.parametrize("words", [["recrod", "--json"], ["--bogus", "--json"]])
def test_json_has_what_is_wrong_with_the_command(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2

    printed = capsys.readouterr()
    assert json.loads(printed.out)["error"]["message"] in printed.err


def test_without_json_stdout_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["why"])

    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["heap", "REC", "--limit", "3", "@end"], {"recording": "REC", "at": "@end", "limit": 3}),
        (["export", "REC", "-o", "x", "total"], {"recording": "REC", "expression": "total", "output": "x"}),
        (["resources", "REC", "--json", "1", "2"], {"recording": "REC", "moments": ["1", "2"], "json": True}),
        (["tag", "REC", "--remove", "a", "b", "--remove", "c"], {"tags": ["b"], "remove": ["a", "c"]}),
    ],
)
def test_options_may_precede_an_optional_argument(
    words: list[str], expected: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, object] = {}

    def run(args: argparse.Namespace) -> int:
        given.update(vars(args))
        return 0

    monkeypatch.setattr(command_module(words[0]), "run", run)

    assert main(words) == 0
    assert {name: given[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("words", "left"),
    [(["seek", "REC", "--json", "1", "2"], "2"), (["heap", "REC", "--limit", "3", "1", "--bogus"], "--bogus")],
)
def test_what_is_too_much_is_named(words: list[str], left: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(words)

    assert f"unrecognized arguments: {left}" in capsys.readouterr().err


@pytest.mark.parametrize(("word", "meant"), [("recrod", "record"), ("snapshot", "snapshots"), ("bisec", "bisect")])
def test_a_mistyped_command_is_recognized(word: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word, "x"]) == 2
    assert f"(did you mean {meant!r}?)" in capsys.readouterr().err


def test_a_word_that_is_like_no_command_has_no_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zzz"]) == 2
    assert "did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["why", "REC", "totl"], "no variable totl here (did you mean 'total'?)."),
        (["log", "REC", "long_lop.py:2", "1"], "(did you mean 'long_loop.py'?)."),
        (["why", "REC", "zzz"], "no variable zzz here."),
    ],
)
def test_the_name_that_was_probably_meant(
    words: list[str], hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = record_file(PROGRAM, tmp_path)

    assert main([str(recording) if each == "REC" else each for each in words]) == 2
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "hint"),
    [("order.rdbg", " (did you mean 'orders.rdbg'?)"), ("run-2", ""), ("elsewhere/orders", "")],
)
def test_the_recording_that_was_probably_meant(
    name: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in ("orders.rdbg", "run-1.rdbg"):
        (tmp_path / each).touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REPLAYDBG_STORE", str(tmp_path / "store"))

    assert main(["info", name]) == 2
    assert f"No recording {name!r} in {tmp_path / 'store'}{hint}. " in capsys.readouterr().err


def test_a_recording_without_snapshots_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = record_file(PROGRAM, tmp_path)

    assert main(["snapshots", str(recording)]) == 0

    printed = capsys.readouterr()
    assert printed.out == ""
    assert "has no snapshots: see --snapshot-every and other options of `record`." in printed.err
