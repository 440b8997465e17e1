"""An earlier object at an address is not confused with the one that is there now."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Breakpoint
from replaydbg.debugger.writes import last_write
from replaydbg.errors import UsageError
from tests.harness.recording import record_file

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = Path(__file__).parents[2] / "fixtures" / "travel" / "why" / "places_used_again.py"
SOURCE = PROGRAM.read_text().splitlines()


@pytest.fixture(scope="module", params=[0.0005, 1000.0], ids=["checkpoints", "one_checkpoint"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    recording = record_file(PROGRAM, tmp_path_factory.mktemp("places"))
    with Session(recording, spacing=request.param) as opened:
        yield opened


def go_to(session: Session, mark: str) -> None:
    line = next(number for number, text in enumerate(SOURCE, 1) if text.endswith(f"  # {mark}"))
    session.seek("@last")
    point = session.breakpoints.add(Breakpoint(0, file=str(PROGRAM), line=line))
    assert session.reverse_go().why == "breakpoint"
    session.breakpoints.remove(point.number)


@pytest.mark.parametrize("place", ["items[3]", "thing.price"])
def test_what_never_was_there_was_not_written(session: Session, place: str) -> None:
    go_to(session, place)
    with pytest.raises(UsageError, match="it does not exist, and never did"):
        session.run.why(place)


@pytest.mark.parametrize("seed", ["1", "2", "4"])
def test_that_it_never_was_there_is_known_wherever_objects_lie(
    seed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The processes of the debugger may have an object at different addresses: here they allocate at random."""
    recording = record_file(PROGRAM, tmp_path)
    monkeypatch.setenv("REPLAYDBG_TEST_PERTURB", seed)
    with Session(recording, spacing=1000.0) as session:
        go_to(session, "thing.price")
        with pytest.raises(UsageError, match="it does not exist, and never did"):
            session.run.why("thing.price")


def test_the_line_that_passed_an_object_is_named_if_the_object_cannot_be_found_again(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_write, "whereabouts", lambda worker, watches: ((0, 0),) * len(watches))
    go_to(session, "receipt.cents")

    told = session.run.why("receipt.cents")

    assert (told.source, told.function, told.is_argument) == ("printed(receipt)", "passed", True)


def test_a_new_object_is_not_the_one_that_was_there(session: Session) -> None:
    go_to(session, "numbers")
    told = session.run.why("numbers")
    assert told.source == 'numbers = array("d", [2.0])'
    assert told.content is None


def test_a_variable_has_no_values_after_its_function(session: Session) -> None:
    go_to(session, "total")
    assert [each.text for each in session.run.history("total")] == ["0", "1", "3", "6"]


def test_an_object_has_one_address_whenever_it_is_asked_for(session: Session) -> None:
    go_to(session, "thing.price")
    texts: dict[str, set[str]] = {}
    for expression in ("id(thing)", "id(Thing)", "id(array)", "id(thing)"):
        told = session.ask.evaluate(expression)
        assert told.value is not None
        texts.setdefault(expression, set()).add(told.value.text)
    assert len({text for each in texts.values() for text in each}) == 3
