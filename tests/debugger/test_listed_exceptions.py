"""`exceptions` lists what is looked for: not hundreds of exceptions of the standard library."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.cli.main import main
from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Breakpoint
from replaydbg.debugger.source.own_code import OwnCode
from replaydbg.debugger.stops.exception_stops import lines_raising
from tests.harness.recording import record_file
from tests.harness.typed import Typed

PACKAGE = """\
def run(function):
    try:
        function()
    except ValueError as error:
        for each in (14, 15):
            try:
                {}[each]
            except KeyError:
                pass
        raise TimeoutError from error
"""

PROGRAM = """\
import json
import sys

sys.path.insert(0, {packages!r})
import package


def main():
    for text in ["x"] * 40:
        try:
            json.loads(text)
        except ValueError:
            pass
    raise ValueError("wrong")


package.run(main)
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    ground = tmp_path_factory.mktemp("listed")
    packages = ground / "site-packages"
    packages.mkdir()
    (packages / "package.py").write_text(PACKAGE)
    program = ground / "program.py"
    program.write_text(PROGRAM.format(packages=str(packages)))
    return record_file(program, ground, status=1)


@pytest.fixture(scope="module")
def session(recording: Path) -> Iterator[Session]:
    with Session(recording) as found:
        yield found


@pytest.fixture(scope="module")
def typed(session: Session) -> Typed:
    return Typed.at("@exc", session)


def raised(said: str) -> list[str]:
    """Return the types and texts of the exceptions in a list."""
    return [line.partition(" raised ")[2].partition("  ")[0] for line in said.splitlines() if "  raised " in line]


def test_those_of_the_standard_library_are_left_out_if_there_are_many(typed: Typed) -> None:
    said = typed("exceptions")

    assert raised(said)[-4:] == [
        "ValueError: wrong",
        "KeyError: 14",
        "KeyError: 15",
        "TimeoutError, which ended the program",
    ]
    assert "JSONDecodeError" not in said
    assert "that the standard library raised are not listed; `exceptions all` lists them" in said


def test_all_of_them_on_demand(typed: Typed) -> None:
    said = typed("exceptions all 99")

    assert said.count("raised JSONDecodeError") == 40
    assert "not listed" not in said


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("own", ["ValueError: wrong"]),
        ("KeyError package.py", ["KeyError: 14", "KeyError: 15"]),
        ("own KeyError", []),
        ("package 1", ["TimeoutError, which ended the program"]),
        ("nothing like this", []),
    ],
)
def test_a_type_and_a_text_select(words: str, expected: list[str], typed: Typed) -> None:
    said = typed(f"exceptions {words}")

    assert raised(said) == expected
    assert ("No such exception was raised" in said) == (not expected)


def test_the_number_limits_a_selection(typed: Typed) -> None:
    said = typed("exceptions KeyError package.py 1")

    assert raised(said) == ["KeyError: 15"]
    assert "(1 earlier ones; `exceptions KeyError package.py 2` shows them)" in said


def test_the_command(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["exceptions", str(recording), "-q"]) == 0
    printed = capsys.readouterr()
    assert raised(printed.out)[-2:] == ["KeyError: 15", "TimeoutError, which ended the program"]
    assert "JSONDecodeError" not in printed.out
    assert "that the standard library raised are not listed: --all lists them." in printed.err

    assert (
        main(["exceptions", str(recording), "-q", "--type", "LookupError", "--text", "package.py", "--limit", "1"]) == 0
    )
    printed = capsys.readouterr()
    assert raised(printed.out) == ["KeyError: 15"]
    assert "Showing the last 1. Use --limit 2 for all." in printed.err


def test_the_command_as_data(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["exceptions", str(recording), "-q", "--own", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    (found,) = data["exceptions"]
    assert (found["type"], found["message"], found["thread"]) == ("ValueError", "wrong", 0)
    assert (Path(found["file"]).name, found["line"], found["function"]) == ("program.py", 14, "main")
    assert found["types"][:2] == ["builtins.ValueError", "builtins.Exception"]
    assert (found["is_own"], found["is_again"], found["ended_program"]) == (True, False, False)
    assert (data["number"], data["hidden"], data["left_out"]) == (1, 0, None)

    assert (
        main(["exceptions", str(recording), "-q", "--all", "--type", "JSONDecodeError", "--limit", "3", "--json"]) == 0
    )
    data = json.loads(capsys.readouterr().out)
    assert [each["type"] for each in data["exceptions"]] == ["JSONDecodeError"] * 3
    assert data["number"] == 40

    assert main(["exceptions", str(recording), "-q", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["hidden"] >= 40
    assert data["exceptions"][-1]["ended_program"] is True


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (["--text", "nothing like this"], 1, "No such exception was raised"),
        (["--type", "NoSuchError"], 2, "--type must be an exception type that the program has (got 'NoSuchError')"),
        (["--limit", "0"], 2, "--limit must be at least 1 (got 0)"),
    ],
)
def test_the_command_names_what_is_wrong(
    words: list[str], code: int, problem: str, recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["exceptions", str(recording), "-q", *words]) == code
    assert problem in capsys.readouterr().err


def test_catch_own_says_who_raised_it_and_how_to_count_a_package_as_own(typed: Typed) -> None:
    said = typed("catch own TimeoutError")

    assert "No TimeoutError was raised in this run by your own code. Libraries raised it once" in said
    assert "`exceptions TimeoutError`" in said
    assert "setting `my_code`" in said


def test_a_package_can_be_counted_as_own(session: Session) -> None:
    point = Breakpoint(1, exception="KeyError", is_own=True, own_code=OwnCode(("*/package.py",)))

    assert len(list(lines_raising(session, point))) == 2
