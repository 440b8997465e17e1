"""`why` names the last write of items of dictionaries whose keys are neither text nor whole numbers."""

import re
from collections.abc import Iterator

import pytest

from replaydbg.debugger import Session
from replaydbg.errors import UsageError
from tests.debugger.test_why_items import marked
from tests.harness.recording import record_file
from tests.harness.sanitizer import usual_addresses
from tests.harness.typed import TRAVEL, Typed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = TRAVEL / "writes_items_with_keys.py"


@pytest.fixture(scope="module", params=[0.0005, 1000.0], ids=["checkpoints", "one_checkpoint"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with usual_addresses():
        recording = record_file(PROGRAM, tmp_path_factory.mktemp("keys"))
        with Session(recording, spacing=request.param) as found:
            yield found


@pytest.mark.parametrize(("place", "mark", "line"), marked(PROGRAM), ids=[each[0] for each in marked(PROGRAM)])
def test_the_last_write_is_named(place: str, mark: str, line: int, session: Session) -> None:
    session.seek("@exc")

    told = session.run.why(place)

    assert (told.line, told.is_equal, told.note) == (line, mark == "==", "")
    assert told.expression == place


def test_an_equal_key_names_the_same_item(session: Session) -> None:
    session.seek("@exc")

    assert session.run.why("cache[same]").line == session.run.why("cache[Query('id', 1)]").line


def test_the_history_of_an_item(session: Session) -> None:
    session.seek("@exc")

    assert [each.text for each in session.run.history("cache[same]")] == ["[1]", "[1, 2]", "[3]"]
    assert [each.text for each in session.run.history("grid[2, 1]")] == ["2"]


def test_watchpoints_stop_at_writes_of_an_item(session: Session) -> None:
    typed = Typed.at("@exc", session)
    typed("watch grid[1, 2]")

    said = typed("reverse-continue")

    top = session.here.top
    assert top is not None
    assert "grid[1, 2] has changed" in said
    assert session.source_line(top.file, top.line - 1).startswith("grid[1, 2] = 7")
    typed("delete")


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("first.parts[Color.RED]", "must be a number or numbers, except in a dictionary (Color.RED is <Color.RED: 1>)"),
        ("grid[9, 9]", "the dictionary does not have this key now"),
        ("cache[first][:1]", "a slice is not an item"),
    ],
)
def test_what_is_no_item_of_a_dictionary_is_refused(place: str, reason: str, session: Session) -> None:
    session.seek("@exc")

    with pytest.raises(UsageError, match=re.escape(reason)):
        session.run.why(place)


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("cache[nothing]", "tracked: NameError: name 'nothing' is not defined."),
        ("cache[frist]", "tracked: NameError: name 'frist' is not defined (did you mean 'first'?)."),
        ("cahce[first]", "tracked: NameError: name 'cahce' is not defined (did you mean 'cache'?)."),
    ],
)
def test_a_key_without_a_value_is_reported_with_its_error(place: str, reason: str, session: Session) -> None:
    session.seek("@exc")

    with pytest.raises(UsageError, match=re.escape(reason)):
        session.run.why(place)
