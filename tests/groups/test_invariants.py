"""An invariant of a whole group holds in all quiet cuts, and a planted loss is found at its line."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from replaydbg.cli.main import main
from replaydbg.prompt import terminal
from tests.harness import tool
from tests.harness.children import CHILDREN, completed
from tests.harness.process import run
from tests.harness.recorded_group import BANK, record_program
from tests.harness.sanitizer import IS_SANITIZED

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(IS_SANITIZED, reason="eight sessions under the sanitizer take minutes, and no C code is theirs"),
]

PROGRAM = Path(__file__).parents[2] / "fixtures" / "cuts" / "bank.py"
AMOUNTS = "0 if b'end' in m else sum(map(int, m.split()))"
TAKES, FEE, ADDS = (
    next(number for number, line in enumerate(PROGRAM.read_text().splitlines(), 1) if text in line)
    for text in ("self.balance -= amount", "self.balance -= 7", "self.balance = balance + int(line)")
)

Record = Callable[..., Path]


@pytest.fixture
def record(tmp_path: Path) -> Record:
    def recorded(fault: str, rounds: int = 60) -> Path:
        program = [str(PROGRAM), str(rounds), *filter(None, [fault])]
        command = tool.record(sys.executable, tmp_path / "made", program, options=CHILDREN)
        done = run(command, cwd=tmp_path, env=dict(os.environ), timeout=100)
        assert done.status == 0, done.stderr
        completed(tmp_path / "made.rdbgs")
        return tmp_path / "made.rdbgs"

    return recorded


def bisect(capsys: pytest.CaptureFixture[str], group: Path, *options: str, holds: str = "total == 3000") -> Any:
    words = ["bisect", "cuts", "-q", "--json", str(group), "--local", "bank.balance", "--holds", holds, *options]
    code = main(words)
    data = json.loads(capsys.readouterr().out)
    return code, data


def test_the_money_adds_up_in_all_quiet_cuts(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    group = record("")

    code, data = bisect(capsys, group, "--channel", AMOUNTS, "--all")

    assert (code, data["answer"], data["unfit"]) == (3, "never", [])
    verdicts = [each["verdict"] for each in data["evaluated"]]
    assert len(verdicts) == data["cuts"]
    assert verdicts.count("good") > 20
    assert "bad" not in verdicts
    # Somewhere money is under way: without the messages it does not add up.
    assert any(each["flight"] for each in data["evaluated"])
    # A search evaluates a few cuts at a time, and finds the same in them.
    _, few = bisect(capsys, group, "--channel", AMOUNTS)
    assert 0 < len(few["evaluated"]) < data["cuts"]
    assert all(each in data["evaluated"] for each in few["evaluated"])


def test_the_money_adds_up_in_two_thousand_quiet_cuts(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    # Ten thousand of them are a row of the bench: `python -m tests.bench --only cuts`.
    group = record("", rounds=4000)

    code, data = bisect(capsys, group, "--channel", AMOUNTS, "--all")

    assert (code, data["answer"], data["unfit"]) == (3, "never", [])
    verdicts = [each["verdict"] for each in data["evaluated"]]
    assert len(verdicts) == data["cuts"]
    assert "bad" not in verdicts
    assert verdicts.count("good") > 2000


@pytest.mark.parametrize(("fault", "line", "by"), [("fee", FEE, -7), ("dropped", TAKES, None)], ids=["fee", "dropped"])
def test_a_loss_is_found_at_its_line(
    fault: str, line: int, by: int | None, record: Record, capsys: pytest.CaptureFixture[str]
) -> None:
    group = record(fault)

    code, data = bisect(capsys, group, "--channel", AMOUNTS)

    assert (code, data["answer"]) == (1, "found")
    values = {each["place"]: each["total"] for each in data["evaluated"]}
    lost = values[data["first_bad"]] - values[data["last_good"]]
    assert values[data["last_good"]] == 3000
    assert by is None or lost == by
    culprits = [each for each in data["changes"] if int(each["after"]) - int(each["before"]) == lost]
    assert line in [each["line"] for each in culprits]


def test_a_lost_update_lies_between_the_cuts(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    group = record("race")

    code, data = bisect(capsys, group, "--channel", AMOUNTS)

    assert (code, data["answer"]) == (1, "found")
    lines = {each["line"] for each in data["changes"] if each["process"] == 3}
    assert {TAKES, ADDS} <= lines


@pytest.mark.parametrize(
    ("options", "holds", "sentence"),
    [
        ((), "total ==", "--holds 'total ==' is not an expression"),
        (("--channel", "int("), "total == 3000", "--channel 'int(' is not an expression"),
        (("--channel", "int(m)"), "total == 3000", "--channel raised ValueError for the message"),
        ((), "amount == 3000", "Available names: locals, flight, and total"),
    ],
    ids=["holds", "channel", "raises", "name"],
)
def test_bad_expressions_get_a_sentence(
    options: tuple[str, ...], holds: str, sentence: str, record: Record, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["bisect", "cuts", "-q", str(record("")), "--local", "bank.balance", "--holds", holds, "--all", *options]

    code = main(words)

    assert code == 2
    assert sentence in capsys.readouterr().err


class Tty(io.StringIO):
    """What a terminal would get."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    "words",
    [
        ("bisect", "cuts", "--holds", "locals", "--local"),
        ("stable", "--holds", "locals", "--local"),
        ("stable", "--token"),
    ],
)
def test_a_report_of_progress_is_cleared_before_the_answer(
    pipes: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(terminal, "SHOWN_AFTER", -1.0)
    screen = Tty()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(sys, "stderr", screen)

    assert main([*words, "sum(range(10_000_000))", str(pipes)]) in (0, 1, 3)

    *reports, last = screen.getvalue().split("(Ctrl-C cancels)\x1b[K")
    assert reports and last.startswith("\r\x1b[K")


@pytest.fixture(scope="module")
def pipes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A parent that asks its child three times."""
    return record_program(tmp_path_factory.mktemp("pipes"), BANK)


@pytest.mark.parametrize(
    ("local", "holds", "total"),
    [
        ("{1, 2}", "len(locals) == 2", None),
        ("1j", "True", "2j"),
        ("10 ** 30", "total > 5", "2" + "0" * 30),
        ("float('inf')", "total > 5", "inf"),
        ("list(range(1000))", "len(locals[1]) == 1000", None),
    ],
)
def test_values_of_all_kinds(
    local: str, holds: str, total: object, pipes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["bisect", "cuts", "-q", "--json", str(pipes), "--local", local, "--holds", holds])

    data = json.loads(capsys.readouterr().out)
    assert (code, data["answer"]) == (3, "never")
    assert data["evaluated"][-1]["total"] == total


@pytest.mark.parametrize(
    ("local", "holds", "sentence"),
    [
        ("nosuch", "True", "--local has no value in any process at the end: NameError: name 'nosuch' is not defined."),
        ("1", "exit()", "--holds raised SystemExit"),
    ],
)
def test_nothing_to_say_is_said(
    local: str, holds: str, sentence: str, pipes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bisect", "cuts", "-q", str(pipes), "--local", local, "--holds", holds]) == 2
    assert sentence in capsys.readouterr().err
