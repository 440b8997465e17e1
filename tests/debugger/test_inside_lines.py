"""Places inside a line: on a line with several statements, a moment of output or of an event is at its statement."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Breakpoint
from replaydbg.errors import NoSuchMoment
from replaydbg.events.show import show_call
from replaydbg.render.texts import events_of, moment_text
from tests.harness.recording import record_file
from tests.harness.typed import Typed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = """\
import time
def f(v):
    return v + 1
a = 1; print("one", a); a = 2; t = time.time(); a = 3; print("two", f(a)); a = 4
a = 5
print("end", a)
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    program = tmp_path_factory.mktemp("inside") / "several.py"
    program.write_text(PROGRAM)
    with Session(record_file(program, program.parent)) as session:
        yield session


def a_here(session: Session) -> str:
    told = session.ask.evaluate("a")
    return told.value.text if told.value is not None else str(told.error)


def line_here(session: Session) -> int:
    assert session.here.top is not None
    return session.here.top.line


def event_named(session: Session, name: str) -> int:
    (found,) = (each.number for each in events_of(session, 1, session.index.events) if name in show_call(each))
    return found


def test_a_line_of_output_is_at_the_statement_that_prints_it(session: Session) -> None:
    seen = []
    for number in (1, 2, 3):
        session.seek(f"@out:{number}")
        seen.append((line_here(session), a_here(session)))

    assert seen == [(4, "1"), (4, "3"), (6, "5")]


def test_an_event_is_at_the_statement_that_asked(session: Session) -> None:
    number = event_named(session, "time.time(")

    session.seek(f"{number}:0")

    assert (line_here(session), a_here(session)) == (4, "2")
    assert session.here.top is not None
    assert "t" not in [each.name for each in session.ask.variables()]


def test_what_is_shown_there_leads_back_there(session: Session) -> None:
    for moment in ("@out:2", f"{event_named(session, 'time.time(')}:0"):
        there = session.seek(moment)
        shown = moment_text(there.moment)
        session.seek("@end")
        typed = Typed.at("@end", session)

        assert "." in shown
        assert session.seek(shown).moment == there.moment
        assert shown in typed(f"seek {shown}")


def test_steps_go_on_from_there_and_back_to_the_beginning_of_the_line(session: Session) -> None:
    first = session.seek("@out:1")
    stepped = session.step().top
    assert stepped is not None
    assert stepped.function == "f"
    session.seek("@out:1")
    session.next()
    assert line_here(session) == 5
    for back in (session.reverse_step, session.reverse_next):
        session.seek("@out:1")
        back()
        assert (line_here(session), session.here.moment.point) == (4, 0)
    session.seek("@out:2")
    session.reverse_next()
    assert (line_here(session), session.here.count) == (4, first.count)


def test_who_wrote_a_value_is_the_last_statement_that_ran(session: Session) -> None:
    seen = []
    for number in (1, 2, 3):
        session.seek(f"@out:{number}")
        told = session.run.why("a")
        seen.append((told.line, told.after, [each.text for each in told.origins]))

    assert seen == [(4, "1", ["1"]), (4, "3", ["3"]), (5, "5", ["5"])]


def test_the_end_is_no_step_back(session: Session) -> None:
    there = session.seek("@out:3")

    assert session.step().why == "end"
    assert (session.here.count, session.here.moment.point) >= (there.count, there.moment.point)


def test_a_breakpoint_of_the_line_lies_behind(session: Session) -> None:
    there = session.seek("@out:1")
    point = session.breakpoints.add(Breakpoint(0, file=str(there.top.file if there.top else ""), line=4))
    found = session.reverse_go()
    session.breakpoints.remove(point.number)

    assert (found.why, found.count, found.moment.point) == ("breakpoint", there.count, 0)


def test_back_in_the_prompt_finds_the_place_inside_the_line(session: Session) -> None:
    typed = Typed.at("@out:2", session)
    typed("seek @out:2")
    shown = moment_text(session.here.moment)
    typed("seek @start")

    assert shown in typed("back")


@pytest.mark.parametrize("point", ["9999", "0.0.1", "x"])
def test_a_point_that_is_not_there_is_refused(session: Session, point: str) -> None:
    here = session.seek("@out:1").moment

    with pytest.raises(NoSuchMoment):
        session.seek(f"{here.event}:{here.step}.{point}")


def test_a_replay_to_an_event_behind_the_end_is_refused(session: Session) -> None:
    command = [sys.executable, "-m", "replaydbg", "replay", str(session.path), "--to", "99999"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 2
    assert "No such moment '99999'" in done.stderr
