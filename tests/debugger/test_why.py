"""`why` names the line that wrote a value, in whatever way it was written."""

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Breakpoint, LastWrite
from replaydbg.errors import UsageError
from replaydbg.render.texts import why_lines
from tests.harness import tool
from tests.harness.process import run
from tests.harness.recording import record_file
from tests.harness.sanitizer import needs_usual_memory, usual_addresses
from tests.harness.surroundings import without_steering

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FOLDER = Path(__file__).parents[2] / "fixtures" / "travel" / "why"
PROGRAM = FOLDER / "writes.py"


@dataclass(frozen=True, slots=True)
class Question:
    """A question at a line of the fixture."""

    name: str
    expression: str
    line: int


def written() -> dict[str, list[tuple[str, int]]]:
    """Return file and line of each mark `# <- NAME`."""
    found: dict[str, list[tuple[str, int]]] = {}
    for path in (PROGRAM, FOLDER / "settings.py"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := re.search(r"# <- (.*)", line):
                found.setdefault(match[1], []).append((str(path), number))
    return found


def questions() -> list[Question]:
    """Return each `# ? NAME: EXPRESSION`; one on a line of its own belongs to the next line of code."""
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
SPECIAL = (
    "property",
    "method",
    "buffer",
    "deleted slot",
    "counter",
    "attribute that is computed",
    "item that is computed",
)


@pytest.fixture(scope="module", params=[0.0005, 1000.0], ids=["checkpoints", "one_checkpoint"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with usual_addresses():
        recording = record_file(PROGRAM, tmp_path_factory.mktemp("why"))
        with Session(recording, spacing=request.param) as opened:
            yield opened


def go_to(session: Session, name: str) -> Question:
    question = next(each for each in questions() if each.name == name)
    session.seek("@last")
    point = session.breakpoints.add(Breakpoint(0, file=str(PROGRAM), line=question.line))
    assert session.reverse_go().why == "breakpoint"
    session.breakpoints.remove(point.number)
    return question


def asked(session: Session, name: str) -> LastWrite:
    return session.run.why(go_to(session, name).expression)


@pytest.mark.parametrize("name", [each.name for each in questions() if each.name not in SPECIAL])
def test_the_line_is_found(session: Session, name: str) -> None:
    told = asked(session, name)
    # A variable may have been bound to an object that changed before, or only the object got another name.
    assert (told.file, told.line) in WRITTEN[name], told
    assert told.count < session.here.count
    assert told.before != told.after


@pytest.mark.parametrize("name", ["property", "method", "attribute that is computed", "item that is computed"])
def test_what_is_computed_is_refused(session: Session, name: str) -> None:
    question = go_to(session, name)
    with pytest.raises(UsageError, match="comput"):
        session.run.why(question.expression)


def test_a_deletion_is_a_write(session: Session) -> None:
    told = asked(session, "deleted slot")
    assert (told.file, told.line) in WRITTEN["deleted slot"]
    assert told.after == ""


def test_the_write_may_be_in_a_library(session: Session) -> None:
    told = asked(session, "counter")
    assert told.function == "Counter.update"


def test_what_only_c_code_can_read_is_not_claimed_to_be_unchanged(session: Session) -> None:
    told = asked(session, "buffer")
    assert told.source == 'pages = io.BytesIO(b"a")'
    assert told.note == "the content of a BytesIO is not tracked: it may have changed since"
    assert not asked(session, "ordered dictionary").note
    assert not asked(session, "attribute of an alias").note


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
@needs_usual_memory
def test_a_write_is_the_line_that_made_it_also_where_another_thread_goes_on_at_once(tmp_path: Path, seed: int) -> None:
    program = FOLDER.parents[1] / "races" / "till.py"
    recording = tmp_path / "till.rdbg"
    command = tool.record(sys.executable, recording, [str(program)], options=["--chaos", str(seed)])
    run(command, cwd=tmp_path, env=without_steering(os.environ), timeout=60.0)
    with Session(recording) as session:
        session.seek("@end")
        made, *written = session.run.history("till.cents")
        assert made.function in ("<module>", "Till.__init__")
        assert {each.function for each in written} == {"Till.pay_in"}
        assert {each.lane for each in written} == {1, 2}
        # In a function it is the same object's: the variable exists for one call only.
        session.seek(written[-1].count)
        born, *again = session.run.history("self.cents")
        assert (born.function, born.text) == ("Till.__init__", "0")
        assert again == written


def test_the_history_of_a_variable_that_functions_share_names_the_lines_that_wrote_it(tmp_path: Path) -> None:
    program = FOLDER / "shared.py"
    lines = program.read_text().splitlines()
    asked_at = next(number for number, line in enumerate(lines, 1) if line.endswith("# <- asked"))
    with Session(record_file(program, tmp_path)) as session:
        stops = [session.index.count(each) for each in session.run.passages(str(program), asked_at)]
        assert len(stops) == 6
        for count in stops:
            session.seek(count)
            changes = list(session.run.history("n"))
            assert [each.text for each in changes] == ["2", "4", "", "5", "7", "9"]
            assert [lines[each.line - 1].strip() for each in changes] == [
                "n = 2",
                "n += 2",
                "del n",
                "n = 5",
                "n += 2",
                "n += 2",
            ]
            assert session.run.why("n").count in [each.count for each in changes]


def test_an_answer_that_is_thrown_away_is_not_given_as_the_origin(tmp_path: Path) -> None:
    recording = record_file(FOLDER / "answer_thrown_away.py", tmp_path)
    with Session(recording) as session:
        session.seek("@end")
        shown = list(why_lines(session, session.run.why("n"), follow="why {name}"))

    asked = [line for line in shown if "perf_counter" in line]
    assert [line.strip().startswith("event during this line: event") for line in asked] == [True]
    assert not any("from" in line and "perf_counter" in line for line in shown)
    assert [line.strip() for line in shown if line.strip().startswith(("from", "computed from"))][-1] == "from found"
