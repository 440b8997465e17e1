"""`why` names the last write of a value even if it wrote an equal one."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Breakpoint, LastWrite
from replaydbg.render import texts
from tests.harness.recording import record_file
from tests.harness.sanitizer import usual_addresses

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = Path(__file__).parents[2] / "fixtures" / "travel" / "writes_equal_values.py"
LINES = PROGRAM.read_text().splitlines()


def marked(mark: str) -> dict[str, int]:
    """Return name and line of each `# MARK NAME`."""
    return {found[1]: number for number, line in enumerate(LINES, 1) if (found := re.search(rf"  # {mark} (.*)", line))}


EQUAL, CHANGED, PERHAPS = marked("=="), marked("<-"), marked("~~")
ASKED = {name.partition(": ")[0]: (name.partition(": ")[2], line) for name, line in marked(r"\?").items()}
UNTOLD = ("too many",)


@pytest.fixture(scope="module", params=[0.0005, 1000.0], ids=["checkpoints", "one_checkpoint"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with usual_addresses():
        recording = record_file(PROGRAM, tmp_path_factory.mktemp("equal"))
        with Session(recording, spacing=request.param) as opened:
            yield opened


def asked(session: Session, name: str) -> LastWrite:
    expression, line = ASKED[name]
    session.seek("@last")
    point = session.breakpoints.add(Breakpoint(0, file=str(PROGRAM), line=line))
    assert session.reverse_go().why == "breakpoint"
    session.breakpoints.remove(point.number)
    return session.run.why(expression)


@pytest.mark.parametrize("name", sorted(EQUAL))
def test_a_write_of_an_equal_value_is_the_last_one(session: Session, name: str) -> None:
    told = asked(session, name)
    assert (told.line, told.is_equal, told.note) == (EQUAL[name], True, ""), told
    assert told.before == told.after
    assert told.changed is not None
    assert told.changed.before != told.changed.after == told.after


@pytest.mark.parametrize("name", sorted(CHANGED.keys() - PERHAPS.keys() - set(UNTOLD)))
def test_no_other_line_is_taken_for_one(session: Session, name: str) -> None:
    told = asked(session, name)
    assert (told.line, told.is_equal, told.changed, told.note) == (CHANGED[name], False, None, ""), told


@pytest.mark.parametrize("name", sorted(PERHAPS))
def test_a_line_of_which_it_cannot_be_told_is_named(session: Session, name: str) -> None:
    told = asked(session, name)
    assert not told.is_equal
    assert f"later by {PROGRAM.name}:{PERHAPS[name]} that_may_have" in told.note


def test_it_says_so_where_too_many_lines_would_have_to_be_looked_at(session: Session) -> None:
    told = asked(session, "too many")
    assert (told.line, told.is_equal) == (CHANGED["too many"], False)
    assert "may have written an equal value later" in told.note


def test_it_is_said_in_words(session: Session) -> None:
    told = asked(session, "lost update")
    first, *others = texts.why_lines(session, told, follow="{name}")
    assert 'balance["x"] was written again with an equal value at ' in first
    assert first.endswith("slow")
    assert any("The value had changed at " in line and line.endswith("quick") for line in others)


def test_after_the_last_write_there_is_the_value(session: Session) -> None:
    told = asked(session, "attribute")
    session.seek(told.count)
    assert session.ask.evaluate("account.limit").value is not None
    assert session.here.top is not None
    assert session.here.top.function == "fourth"
