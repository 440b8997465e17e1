"""`replaydbg resources`, the prompt's command and the dialog of the terminal UI."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from replaydbg.cli.main import main
from replaydbg.debugger import Session
from tests.harness.recording import record_file
from tests.harness.screens import opened, shown_rows
from tests.harness.seen import Seen, see
from tests.harness.typed import Typed

pytestmark = pytest.mark.slow

LEAK = """\
import os, subprocess, sys
kept = []
for number in range(6):
    file = open(f"out{number}.txt", "w")
    if number % 2:
        file.close()
    else:
        kept.append(file)
left = subprocess.Popen(["sleep", "0"])
os.getppid()
sys.exit("failed")
"""


@pytest.fixture(scope="module")
def leak(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("leak") / "leak.py"
    program.write_text(LEAK)
    return record_file(program, program.parent, status=1)


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Run the command; return its exit code and outputs."""
    code = main(["resources", *words])
    out, err = capsys.readouterr()
    return code, out, err


def rows(text: str) -> list[list[str]]:
    """Return the words of the lines."""
    return [line.split() for line in text.splitlines()]


def test_what_is_open_at_the_end(leak: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = shown(capsys, str(leak))

    assert (code, err) == (0, "")
    files = [words for words in rows(out) if len(words) > 3 and words[3].startswith("out")]
    assert [words[:4] for words in files] == [
        [str(at), "file", "w", f"out{n}.txt"] for at, n in ((3, 0), (4, 2), (5, 4))
    ]
    assert all(words[-1] == "leak.py:4" for words in files)
    assert "sleep 0" in out


def test_a_note_names_its_descriptors(leak: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = shown(capsys, str(leak))

    notes = [line for line in out.splitlines() if line.strip().startswith("?")]
    assert notes
    assert all(re.match(r"  \? descriptors? \d", each) for each in notes), notes


def test_a_leak_is_found_between_two_moments(leak: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = shown(capsys, str(leak), "@end", "@start")

    assert code == 1
    assert "and not closed: 3" in out
    assert ["3", "leak.py:4", "3", "file", "out0.txt"] in [words[:5] for words in rows(out)]
    assert "Children that were started, and not waited for" in out


def test_nothing_leaks_between_equal_moments(leak: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = shown(capsys, str(leak), "@start", "1")

    assert code == 0
    assert "and not closed: 0" in out


def test_as_json(leak: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = shown(capsys, str(leak), "--json")
    facts: dict[str, Any] = json.loads(out)

    assert code == 0
    files = [each for each in facts["opened"] if each["kind"] == "file" and each["origin"]["event"]]
    assert [each["path"] for each in files] == ["out0.txt", "out2.txt", "out4.txt"]
    assert files[0]["absolute"] == str(leak.parent / "out0.txt")
    assert files[0]["origin"]["site"]["line"] == 4
    output = next(each for each in facts["opened"] if each["numbers"] == [1])
    assert output["flags"] == {"unknown": "inherited, so its path, flags and offset are not recorded"}
    assert [each["command"] for each in facts["children"]] == [["sleep", "0"]]

    _, out, _ = shown(capsys, str(leak), "@start", "@end", "--json")
    facts = json.loads(out)
    assert (facts["unclosed"], facts["doubtful"]) == (3, 0)
    assert [len(each["descriptors"]) for each in facts["lines"]] == [3]


def test_moments_that_need_a_replay(leak: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = shown(capsys, str(leak), "@exc", "-q")

    assert code == 0
    assert "out4.txt" in out


@pytest.mark.parametrize(
    ("moments", "message"),
    [
        (["99999"], "No such moment '99999': the recording has"),
        (["@#1"], "No such moment '@#1': the recording has no such snapshot"),
        (["1", "2", "3"], "usage: resources REC [MOMENT [MOMENT]] (got 3 moments)"),
    ],
)
def test_bad_moments(leak: Path, capsys: pytest.CaptureFixture[str], moments: list[str], message: str) -> None:
    code, out, err = shown(capsys, str(leak), *moments)

    assert (code, out) == (2, "")
    assert message in err and err.count("\n") == 1


def test_at_the_prompt(leak: Path) -> None:
    with Session(leak) as session:
        typed = Typed.at("@exc", session)

        assert "out4.txt" in typed("resources")
        assert "and not closed: 3" in typed("resources @start @end")
        assert "usage: resources [MOMENT [MOMENT]] (got 3 moments)" in typed("resources 1 2 3")
        assert "the recording has" in typed("resources 99999")


def test_in_the_terminal_ui(leak: Path) -> None:
    """The dialog goes to the call that opened a descriptor."""

    async def look(seen: Seen) -> None:
        await seen.press("R")
        await opened(seen)
        shown = shown_rows(seen)
        assert any("out0.txt" in each for each in shown)
        assert any("sleep 0" in each for each in shown)
        (at,) = [index for index, each in enumerate(shown) if "out0.txt" in each]
        first = next(index for index, each in enumerate(shown) if each.split()[-1:] == ["leak.py:4"])
        await seen.press(*["down"] * (at - first), "enter")
        await seen.settled()

        assert seen.scene.at is not None
        assert seen.scene.at.line == 4

    see(leak, look)
