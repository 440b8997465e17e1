"""When an expression was true, over the whole run: as a plain trace of the program says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.bisection.predicates import bad_if
from replaydbg.debugger.bisection.run_bisection import begin_bisection
from replaydbg.debugger.bisection.true_stretches import true_stretches
from tests.harness.recording import record_file
from tests.harness.typed import TRAVEL, Typed

PROGRAM = TRAVEL / "raises_in_a_loop.py"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_file(PROGRAM, tmp_path_factory.mktemp("holds"))


@pytest.fixture(scope="module")
def session(recording: Path) -> Iterator[Session]:
    with Session(recording) as found:
        yield found


def stretches_by_stepping(session: Session, expression: str) -> list[tuple[int, int]]:
    """Return first and last line of each stretch, by asking at every line in throw-away copies."""
    found: list[tuple[int, int]] = []
    for count in range(session.first_own, session.index.end + 1):
        session.seek(count)
        value = session.ask.evaluate(f"bool({expression})").value
        if value is None or value.text != "True":
            continue
        if found and found[-1][1] == count - 1:
            found[-1] = found[-1][0], count
        else:
            found.append((count, count))
    return found


@pytest.mark.parametrize(
    "expression",
    ["total > 5", "number % 3 == 1", "handled is None", "handled == 3", "total > 100", "True", "'number' in globals()"],
    ids=["to the end", "now and then", "from the start", "once", "never", "always", "defined"],
)
def test_it_holds_where_it_is_true(session: Session, expression: str) -> None:
    search = begin_bisection(session, bad_if(expression), session.first_own, session.index.end)
    found = list(true_stretches(search, 100))

    lines = [
        (
            each.begin.count + 1 if each.begin is not None else session.first_own,
            each.end.count if each.end is not None else session.index.end,
        )
        for each in found
    ]
    assert lines == stretches_by_stepping(session, expression)


def test_the_prompt(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")  # the path of a checkout can be long, and a narrow column would cut it
    typed = Typed.at("@start", session)

    printed = typed("holds number == 4")
    assert "number == 4: true once" in printed
    assert "raises_in_a_loop.py:4" in "".join(printed.split())
    assert "number > 10 was never true." in typed("holds number > 10")
    assert "cannot be evaluated" not in typed("holds number > 10")
    assert "usage: holds EXPRESSION" in typed("holds")
    assert "The predicate has side effects" in typed("holds globals().update(total=total + 1) or total > 3")


def test_a_name_that_is_not_defined_is_reported(session: Session) -> None:
    """A false expression and one that never had a value are two answers."""
    typed = Typed.at("@start", session)

    printed = typed("holds numbr == 4")
    assert "numbr == 4 was never true." in printed
    assert "it cannot be evaluated: NameError: name 'numbr' is not defined." in printed
    assert "--frame FUNCTION uses the local variables" in printed
    assert "--frame FUNCTION" not in typed("holds number / 0 == 4")
    assert "cannot be evaluated" not in typed("holds --only-at raises_in_a_loop.py:4 number == 99")
    assert "it cannot be evaluated: nothing() never runs" in typed("holds --frame nothing number == 4")


def test_a_bisection_names_the_option_for_local_variables(session: Session) -> None:
    typed = Typed.at("@start", session)

    assert "--frame FUNCTION uses the local variables" in typed("bisect numbr == 4")
    assert "--frame FUNCTION uses" not in typed("bisect --frame nothing number == 4")


def command(*words: object) -> subprocess.CompletedProcess[str]:
    every = [sys.executable, "-m", "replaydbg", "holds", *map(str, words)]
    return subprocess.run(every, capture_output=True, text=True, timeout=100, check=False)


def test_the_command(recording: Path) -> None:
    done = command(recording, "number % 2 == 1", "--json")
    answer = json.loads(done.stdout)

    assert done.returncode == 0, done
    assert answer["expression"] == "number % 2 == 1"
    assert len(answer["stretches"]) == 5 and not answer["is_cut"]
    first = answer["stretches"][0]
    assert first["begin"]["line"] == first["end"]["line"] == 4
    assert answer["stretches"][-1]["end"] is None

    cut = command(recording, "number % 2 == 1", "--limit", 2)
    assert "true 2 times" in cut.stdout and "Showing the first 2." in cut.stdout
    assert command(recording, "number > 99").returncode == 1
    unknown = command(recording, "numbr > 99", "--json")
    assert unknown.returncode == 1
    assert json.loads(unknown.stdout)["last_reason"] == "NameError: name 'numbr' is not defined"
    assert command(recording, "number >").returncode == 2
    assert "--limit must be at least 1" in command(recording, "number", "--limit", 0).stderr
