"""For an immutable value `why` never reports a possible change: its type decides, with all its parts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.frame_queries import At
from replaydbg.debugger.writes.last_write import place_named
from tests.harness.recording import record_file

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = Path(__file__).parents[2] / "fixtures" / "travel" / "why" / "fixed_values.py"
NAMES = [line.split(" = ")[0] for line in PROGRAM.read_text().splitlines() if line.startswith(("fixed_", "open_"))]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with Session(record_file(PROGRAM, tmp_path_factory.mktemp("fixed"))) as session:
        yield session


@pytest.mark.parametrize("name", NAMES)
def test_its_type_decides_whether_a_value_can_change(session: Session, name: str) -> None:
    place = place_named(session, name, At())

    assert session.ask.is_mutable(place, At()) is name.startswith("open_")


@pytest.mark.parametrize("name", [each for each in NAMES if each.startswith("fixed_")])
def test_nothing_is_said_of_changes_of_what_cannot_change(session: Session, name: str) -> None:
    told = session.run.why(name)

    assert told.source.startswith(f"{name} = ")
    assert (told.note, told.content) == ("", None)


def test_what_only_c_code_can_read_and_change_is_still_named(session: Session) -> None:
    assert "content of a BytesIO is not tracked" in session.run.why("open_buffer").note
    assert session.run.why("open_array").note == ""
