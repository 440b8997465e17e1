"""The last change of an object that has a new name: of a class, or older than the name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.errors import UsageError
from replaydbg.render.texts import why_lines
from tests.harness.recording import record_file
from tests.harness.typed import TRAVEL


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    program = TRAVEL / "shares_a_class_attribute.py"
    with Session(record_file(program, tmp_path_factory.mktemp("shared"), status=1)) as session:
        yield session


def told(session: Session, expression: str) -> list[str]:
    session.seek("@exc")
    return list(why_lines(session, session.run.why(expression, 1), follow="why {name} --at {moment}"))


def test_the_change_of_a_list_that_the_class_has(session: Session) -> None:
    lines = told(session, "second.rules")

    at = lines.index("The content of the object was last changed elsewhere:")
    assert "Parser.enable" in lines[at + 1]
    assert lines[at + 3 : at + 5] == ["  before  ['text']", "  after   ['text', 'wiki']"]


def test_what_is_proposed_can_be_asked(session: Session) -> None:
    lines = told(session, "answer")

    assert "The object was made here:" in lines
    assert "[:]" not in lines[-1] and "why cache --at" in lines[-1]


def test_of_a_list_that_was_changed_elsewhere_the_way_to_its_owner_is_proposed(tmp_path: Path) -> None:
    program = tmp_path / "layers.py"
    program.write_text(
        "DEFAULTS = ['core']\n"
        "def layered(more):\n"
        "    merged = DEFAULTS\n"
        "    if more:\n"
        "        merged += more\n"
        "    return merged\n"
        "extra = ['ledger']\n"
        "layered(extra)\n"
        "plugins = layered([])\n"
        "def fail():\n"
        "    raise ValueError\n"
        "fail()\n"
    )
    with Session(record_file(program, tmp_path, status=1)) as session:
        asked = told(session, "plugins")
        assert "layers.py:5 layered" in asked[asked.index("The content of the object was last changed elsewhere:") + 1]
        proposed = asked[-1].removeprefix("Next: ").split(", or ")

        way = re.fullmatch(r"why merged --at (\S+)", proposed[-1])

        assert way is not None and "why more --at" in proposed[0]
        session.seek(way[1])
        assert "  from DEFAULTS" in list(why_lines(session, session.run.why("merged"), follow=""))


def test_a_name_of_the_main_module_is_found_there(tmp_path: Path) -> None:
    """The failure is in a function of another module, whose variables are others."""
    (tmp_path / "fails.py").write_text("def fail(amount):\n    raise ValueError(amount)\n")
    (tmp_path / "main.py").write_text("import fails\nbalances = [1]\nfails.fail(2)\n")
    with Session(record_file(tmp_path / "main.py", tmp_path, status=1)) as session:
        session.seek("@exc")
        with pytest.raises(UsageError, match=r"no variable balances here; the main module has it: __main__\.balances"):
            session.run.why("balances")
        assert session.run.why("__main__.balances").moment is not None


def test_a_name_of_an_outer_frame_is_found_there(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text("def fail(amount):\n    raise ValueError(amount)\n")
    (tmp_path / "main.py").write_text(
        "import fails\n\ndef pay(account):\n    owed = 2\n    fails.fail(owed)\n\npay([1])\n"
    )
    with Session(record_file(tmp_path / "main.py", tmp_path, status=1)) as session:
        session.seek("@exc")
        with pytest.raises(UsageError, match="no variable owed here; frame 1 has it: use --frame 1, or at the prompt"):
            session.run.why("owed")
        assert session.run.why("owed", 1).source == "owed = 2"
        with pytest.raises(UsageError, match=r"no variable owned here\."):
            session.run.why("owned")


def test_dates_are_shown_that_an_object_has(tmp_path: Path) -> None:
    with Session(record_file(TRAVEL / "shows_dates.py", tmp_path, status=1)) as session:
        session.seek("@exc")
        texts = {each.name: each.text for each in session.ask.variables()}

    assert texts["jobs"] == "[Job(2024-05-01 10:30:00), Job(365 52)]"
    assert texts["epoch"] == "1970 Fri Jan  2 00:00:00 1970"
    assert "not available in the past" in texts["zone"]
