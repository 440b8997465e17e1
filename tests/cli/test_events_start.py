"""At a terminal, `events` shows the interpreter's start as one line."""

import json
from pathlib import Path

import pytest

from replaydbg.cli.main import main
from replaydbg.cli.recordings import events
from tests.harness.recording import record_file


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    ground = tmp_path_factory.mktemp("start")
    program = ground / "program.py"
    program.write_text("import random\nrandom.random()\nopen(__file__).read()\n")
    return record_file(program, ground)


def listed(recording: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[list[str]]:
    capsys.readouterr()
    assert main(["events", *words, str(recording)]) == 0
    return [line.split("\t") for line in capsys.readouterr().out.splitlines()]


def test_the_start_is_one_line(
    recording: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = [row for row in listed(recording, capsys) if row[0]]
    monkeypatch.setattr(events, "is_terminal", lambda: True)

    first, *others = (row for row in listed(recording, capsys) if row[0])

    last = int(first[0].removeprefix("1-"))
    assert "the interpreter starts" in first[3]
    assert [row[:5] for row in others] == [row[:5] for row in everything[last:]]
    assert "program.py:3 in <module>" in [row[5] for row in others]
    assert any(row[5].endswith("/program.py:3 in <module>") for row in everything)
    assert "<frozen site>" in everything[last - 1][5]
    assert any("Random.seed" in row[3] for row in others)


@pytest.mark.parametrize("words", [["--call", "nosuch"], ["--from", "9999"], ["--from", "3", "--to", "2"]])
def test_a_selection_of_nothing_says_so(words: list[str], recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", *words, str(recording)]) == 0

    printed = capsys.readouterr()
    assert printed.out == ""
    assert "No event of the recording is selected." in printed.err


@pytest.mark.parametrize("words", [["--all"], ["--from", "1"], ["--to", "999"], ["--call", "*"]])
def test_whoever_selects_events_gets_all_of_them(
    words: list[str], recording: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "is_terminal", lambda: True)

    rows = [row for row in listed(recording, capsys, *words) if row[0]]

    assert [rows[0][0], rows[1][0]] == ["1", "2"]


def test_data_has_all_of_them(
    recording: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "is_terminal", lambda: True)

    assert main(["events", "--json", str(recording)]) == 0

    entries = json.loads(capsys.readouterr().out)["entries"]
    assert next(each["event"] for each in entries if "event" in each) == 1
