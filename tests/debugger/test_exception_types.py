"""An exception can be named by any name with which `except` would catch it."""

from collections.abc import Iterator

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.bisection import predicates
from replaydbg.debugger.bisection.bisect_results import Answer
from replaydbg.errors import UsageError
from tests.harness.recording import record_file
from tests.harness.typed import Typed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = """\
import json
import socket

class Refused(LookupError):
    class Twice(ValueError):
        pass

Known = Refused

def caught(do):
    try:
        do()
    except BaseException as error:
        return error

def refuse(): raise Refused("x")
def refuse_twice(): raise Refused.Twice("x")
def look_up(): return {}["k"]
def leave_open(): return open("/nonexistent")
def group(): raise ExceptionGroup("several", [ValueError(1)])
def parse(): return json.loads("{")
def make(number): raise type(f"Made{number}", (ArithmeticError,), {})("x")

for each in (refuse, refuse_twice, look_up, leave_open, group, parse):
    caught(each)
for number in range(3):
    caught(lambda: make(number))
"""

REFUSE, REFUSE_TWICE, LEAVE_OPEN, GROUP, MAKE = 16, 17, 19, 20, 22


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    program = tmp_path_factory.mktemp("types") / "types_of_exceptions.py"
    program.write_text(PROGRAM)
    with Session(record_file(program, program.parent)) as session:
        yield session


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("LookupError", REFUSE),
        ("Exception", REFUSE),
        ("__main__.Refused", REFUSE),
        ("types_of_exceptions.Refused", REFUSE),
        ("Known", REFUSE),
        ("Twice", REFUSE_TWICE),
        ("Refused.Twice", REFUSE_TWICE),
        ("ValueError", REFUSE_TWICE),
        ("builtins.OSError", LEAVE_OPEN),
        ("IOError", LEAVE_OPEN),
        ("EnvironmentError", LEAVE_OPEN),
        ("socket.error", LEAVE_OPEN),
        ("BaseExceptionGroup", GROUP),
        ("ArithmeticError", MAKE),
        ("Made2", MAKE),
    ],
)
def test_a_bisection_finds_the_first_one(session: Session, name: str, line: int) -> None:
    found = session.run.bisect(predicates.raises(name), first=session.index.moment(session.first_own))

    assert found.culprit is not None
    assert found.culprit.line == line


def test_what_a_module_calls_a_type_is_that_type(session: Session) -> None:
    assert session.types_named("json.JSONDecodeError") == session.types_named("json.decoder.JSONDecodeError")
    assert session.types_named("JSONDecodeError") == {"json.decoder.JSONDecodeError"}


def test_a_type_that_nobody_raised_is_known(session: Session) -> None:
    assert session.run.bisect(predicates.raises("BufferError")).answer is Answer.NEVER


@pytest.mark.parametrize("name", ["NoSuchError", "nosuch.KeyError", "json.KeyErrors", "Refused.KeyError"])
def test_a_type_that_the_run_does_not_know_is_said_to_be_unknown(session: Session, name: str) -> None:
    with pytest.raises(UsageError, match=f"Unknown exception type: {name}"):
        session.run.bisect(predicates.raises(name))


def test_breakpoints_stop_at_subclasses_in_both_directions(session: Session) -> None:
    typed = Typed.at("@end", session)
    assert "exception LookupError" in typed("catch LookupError")
    assert "raises KeyError: k (breakpoint 1)" in typed("rc")
    assert "raises Refused: x (breakpoint 1)" in typed("rc")
    assert "raises KeyError: k (breakpoint 1)" in typed("c")
    assert "exception OSError" in typed("break OSError")
    assert "(breakpoint 2)" in typed("c")
    assert "exception IOError" in typed("clear", "catch IOError")
    assert "No BufferError was raised in this run" in typed("catch BufferError")
    assert "No BufferError was raised in this run" in typed("break BufferError")
    assert "Unknown exception type: NoSuchError" in typed("catch NoSuchError")
    assert "No function named 'NoSuchError' ran" in typed("break NoSuchError")
