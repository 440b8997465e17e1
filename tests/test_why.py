"""`why` names the line that wrote a value, in whatever way it was written."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.values import Breakpoint, Why
from replaydbg.errors import UsageError
from tests.harness.recording import record_file

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FOLDER = Path(__file__).parents[1] / "fixtures" / "travel" / "why"
PROGRAM = FOLDER / "writes.py"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked at a line of the fixture."""

    name: str
    expression: str
    line: int


def written() -> dict[str, list[tuple[str, int]]]:
    """File and line of each mark `# <- NAME`."""
    found: dict[str, list[tuple[str, int]]] = {}
    for path in (PROGRAM, FOLDER / "settings.py"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := re.search(r"# <- (.*)", line):
                found.setdefault(match[1], []).append((str(path), number))
    return found


def questions() -> list[Question]:
    """Each `# ? NAME: EXPRESSION`; on a line of its own it is asked at the next line of code."""
    found = []
    lines = PROGRAM.read_text().splitlines()
    for number, line in enumerate(lines, 1):
        if match := re.search(r"# \? ([^:`]*): (.*)", line):
            at = number
            while lines[at - 1].lstrip().startswith("#"):
                at += 1
            found.append(Question(match[1], match[2], at))
    return found


WRITTEN = written()
SPECIAL = ("property", "method", "deque", "deleted slot", "counter", "attribute that is computed")


@pytest.fixture(scope="module", params=[0.0005, 1000.0], ids=["checkpoints", "one_checkpoint"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    recording = record_file(PROGRAM, tmp_path_factory.mktemp("why"))
    with Session(recording, spacing=request.param) as opened:
        yield opened


def go_to(session: Session, name: str) -> Question:
    question = next(each for each in questions() if each.name == name)
    session.seek("@last")
    point = session.add_breakpoint(Breakpoint(0, file=str(PROGRAM), line=question.line))
    assert session.reverse_go().why == "breakpoint"
    session.remove_breakpoint(point.number)
    return question


def asked(session: Session, name: str) -> Why:
    return session.why(go_to(session, name).expression)


@pytest.mark.parametrize("name", [each.name for each in questions() if each.name not in SPECIAL])
def test_the_line_is_found(session: Session, name: str) -> None:
    told = asked(session, name)
    # A variable may have got an object that changed before, or only another name of it.
    assert (told.file, told.line) in WRITTEN[name], told
    assert told.count < session.here.count
    assert told.before != told.after


@pytest.mark.parametrize("name", ["property", "method", "attribute that is computed"])
def test_what_is_computed_is_refused(session: Session, name: str) -> None:
    question = go_to(session, name)
    with pytest.raises(UsageError, match="comput"):
        session.why(question.expression)


def test_a_deletion_is_a_write(session: Session) -> None:
    told = asked(session, "deleted slot")
    assert (told.file, told.line) in WRITTEN["deleted slot"]
    assert told.after == ""


def test_the_write_may_be_in_a_library(session: Session) -> None:
    told = asked(session, "counter")
    assert told.function == "Counter.update"


def test_what_only_c_code_can_read_is_not_claimed_to_be_unchanged(session: Session) -> None:
    told = asked(session, "deque")
    assert told.source == "d = collections.deque([1])"
    assert told.note == "the content of a deque is not followed: it may have changed since"
    assert not asked(session, "ordered dictionary").note
    assert not asked(session, "attribute of an alias").note
