"""A variable of another module is named by its module: `warehouse.stock.total`, wherever the program is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Breakpoint
from replaydbg.debugger.source.place_expressions import parse_place
from replaydbg.errors import ForgedMessage, UsageError
from tests.harness.recording import record_file

PROGRAM = Path(__file__).parents[2] / "fixtures" / "travel" / "uses_a_package.py"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    recording = record_file(PROGRAM, tmp_path_factory.mktemp("package"))
    with Session(recording) as opened:
        yield opened


@pytest.fixture(autouse=True)
def end(session: Session) -> None:
    session.seek("@end")


def value(session: Session, source: str) -> str:
    """Return an expression's value as text, or what it raised."""
    evaluated = session.ask.evaluate(source)
    return evaluated.value.text if evaluated.value is not None else str(evaluated.error)


def test_it_can_be_evaluated(session: Session) -> None:
    assert value(session, "warehouse.stock.total") == "6"
    assert value(session, "[warehouse.stock.counts[each] for each in ('nut',)]") == "[6]"


def test_the_line_that_wrote_it_is_found(session: Session) -> None:
    write = session.run.why("warehouse.stock.total")

    assert (write.line, write.before, write.after) == (10, "3", "6")
    assert write.file.endswith("warehouse/stock.py")


def test_the_line_that_wrote_an_item_is_found(session: Session) -> None:
    write = session.run.why("warehouse.stock.counts['nut']")

    assert (write.line, write.before, write.after) == (11, "3", "6")


def test_all_its_values_are_listed(session: Session) -> None:
    assert [each.text for each in session.run.history("warehouse.stock.total")] == ["0", "1", "3", "6"]


def test_a_condition_can_name_it(session: Session) -> None:
    file = session.sources.file_named(PROGRAM.name)
    session.seek("@start")
    point = session.breakpoints.add(Breakpoint(0, file=file, line=11, condition="warehouse.stock.total > 0"))
    session.go()

    assert value(session, "number") == "2"
    session.breakpoints.remove(point.number)


def test_a_variable_that_a_frame_sees_comes_first(session: Session) -> None:
    file = session.sources.file_named(PROGRAM.name)
    point = session.breakpoints.add(Breakpoint(0, file=file, line=7))
    session.reverse_go()

    assert value(session, "json") == "3"
    assert value(session, "json.dumps") == "AttributeError: 'int' object has no attribute 'dumps'"
    session.breakpoints.remove(point.number)


def test_a_function_hides_the_module_of_its_name(session: Session) -> None:
    """The package has a function `stack`, and a module of that name."""
    assert value(session, "warehouse.stack.height") == "1"
    write = session.run.why("warehouse.stack.height")

    assert write.file.endswith("warehouse/__init__.py")


@pytest.mark.parametrize("step", [99, 1])
def test_a_step_that_is_none_is_refused(step: int) -> None:
    place = parse_place("warehouse.stock['total']")

    with pytest.raises(ForgedMessage):
        place.in_module(step)


@pytest.mark.parametrize("name", ["warehouse", "warehous.stock.total"])
def test_a_name_of_no_variable_is_refused(session: Session, name: str) -> None:
    with pytest.raises(UsageError, match="no variable"):
        session.run.why(name)
