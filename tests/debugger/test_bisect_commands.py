"""`replaydbg bisect snapshots`: its output and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replaydbg.cli.main import main
from replaydbg.debugger import Session
from replaydbg.render.texts import moment_text
from tests.harness.recording import record_file
from tests.harness.typed import Typed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = Path(__file__).parents[2] / "fixtures" / "bisect" / "bank.py"
LOST = "sum(accounts.values()) != 1000"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(PROGRAM, tmp_path_factory.mktemp("bank"), status=1)


@pytest.fixture
def bisect(recording: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*words: str, code: int = 1) -> str:
        assert main(["bisect", "snapshots", "-q", str(recording), *words]) == code
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return captured.out or captured.err

    return run


def test_it_names_the_line_and_how_to_go_there(bisect: Any) -> None:
    told = bisect("--bad", LOST)
    head, source, values, *rest = told.splitlines()
    assert head.startswith(f"{LOST}: permanently true after ")
    assert "bank.py:" in head
    assert "accounts[giver] -= 1" in source
    assert values.split() == ["sum(accounts.values())", "1000", "->", "999"]
    assert rest[-1].startswith("Go there: replaydbg debug ")


def test_its_json_and_its_markdown_say_the_same(bisect: Any) -> None:
    told = json.loads(bisect("--bad", LOST, "--json"))
    assert (told["schema_version"], told["kind"], told["outcome"], told["answer"]) == (2, "snapshots", "found", "found")
    assert told["culprit"]["source"] == "accounts[giver] -= 1  # <- fee"
    assert not told["is_monotone"]
    assert bisect("--bad", LOST, "--md").startswith(f"**{LOST}: permanently true after {told['culprit']['moment']} ")


def test_all_changes_are_listed(bisect: Any) -> None:
    told = json.loads(bisect("--check", "transfer < 2", "--all", "--json"))
    assert [each["is_bad"] for each in told["changes"]] == [True]
    assert "transfer" in bisect("--check", "transfer < 2", "--all")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--bad", "accounts["), 2, "not an expression"),
        (("--bad", "len(accounts) > 10"), 3, "not true at"),
        (("--bad", "True"), 3, "already true at "),
        (("--bad", "blance > 1"), 3, "name 'blance' is not defined"),
        (("--bad", LOST, "--in", "nowhere"), 3, "nowhere is not imported yet"),
        (("--bad", LOST, "--in", "a", "--frame", "b"), 2, "cannot be combined"),
        (("--output", "x", "--in", "a"), 2, "for expressions and functions"),
        (("--invariant", "no such one"), 3, "has not set invariant"),
        (("--bad", LOST, "--from", "90%", "--to", "10%"), 2, "Empty range: 90% is not before 10%"),
        (("--bad", LOST, "--to", "somewhere"), 2, "No such moment"),
        (("--function", "nowhere.py:f"), 2, "cannot be read"),
    ],
)
def test_what_makes_no_sense_gets_a_sentence(bisect: Any, words: tuple[str, ...], code: int, says: str) -> None:
    assert says in bisect(*words, code=code)


def test_the_prompt_goes_to_the_line(recording: Path) -> None:
    with Session(recording) as session:
        typed = Typed.at("@end", session)
        assert "permanently true after" in typed(f"bisect {LOST}")
        assert session.here.top is not None
        assert session.here.top.function == "fee"
        assert "usage: bisect" in typed("bisect")


def test_the_prompt_takes_the_words_of_the_command_line(recording: Path) -> None:
    with Session(recording) as session:
        typed = Typed.at("@end", session)

        assert "first true after" in typed("bisect --check transfer < 2 --linear")
        first = session.here.count
        assert "not true at" in typed(f"bisect transfer > 1 --to {moment_text(session.here.moment)}")
        assert "bad" in typed("bisect transfer > 1 --all")
        assert session.here.count == first
        assert "in fee()" in typed(f"bisect {LOST} --frame fee")
        assert "was raised" in typed("bisect AssertionError --raises")


def test_words_of_the_prompt_that_make_no_sense(recording: Path) -> None:
    with Session(recording) as session:
        typed = Typed.at("@end", session)
        for line, says in (
            ("bisect transfer > 1 --lineal", "Unknown option --lineal: --frame FUNC"),
            ("bisect transfer > 1 --from", "--from needs a value"),
            ("bisect --linear --all transfer > 1", "--linear, --permanent and --all cannot be combined."),
            ("bisect --raises --output x", "--raises and --output cannot be combined."),
            ("bisect transfer --to 1 --to 2", "--to is given twice."),
            ("bisect --linear", "usage: bisect"),
        ):
            assert says in typed(line)
