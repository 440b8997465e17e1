"""Conditions and ignore counts of breakpoints, of every kind and in both directions."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.session_results import Breakpoint
from tests.harness.recording import record_file

PROGRAM = Path(__file__).parents[2] / "fixtures" / "travel" / "raises_in_a_loop.py"

STOPS = {
    "line": [1, 3, 5, 7, 9],
    "exception": [1, 3, 5, 7, 9],
    # The changes of `total` are seen when the next line is about to run.
    "watch": [2, 4, 6, 8],
}
"""The numbers at which a breakpoint of each kind stops in the loop."""


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with Session(record_file(PROGRAM, tmp_path_factory.mktemp("conditions"))) as session:
        # Going backwards searches from checkpoint to checkpoint: passages are counted across them.
        for count in range(session.first_own, session.index.end, 7):
            session.travel.timeline.add(session.travel.at(count))
        yield session


@pytest.fixture(params=list(STOPS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def session(opened: Session) -> Iterator[Session]:
    yield opened
    for point in opened.breakpoints:
        opened.breakpoints.remove(point.number)


def breakpoint_of(session: Session, kind: str, condition: str = "", ignore: int = 0) -> Breakpoint:
    session.seek("@end")
    if kind == "watch":
        number = session.run.watch("total").number
        return session.breakpoints.change(number, condition=condition, ignore=ignore)
    file = session.sources.file_named(PROGRAM.name)
    place = Breakpoint(0, exception="ValueError") if kind == "exception" else Breakpoint(0, file=file, line=10)
    added = session.breakpoints.add(place)
    return session.breakpoints.change(added.number, condition=condition, ignore=ignore)


def stops(session: Session, *, forward: bool) -> list[int]:
    """Return the numbers in the loop at which the session stops, one after another."""
    session.seek("@start" if forward else "@end")
    found = []
    while (session.go() if forward else session.reverse_go()).breakpoint:
        value = session.ask.evaluate("globals().get('number')").value
        assert value is not None
        found.append(int(value.text) if value.text != "None" else -1)
    return [each for each in found if each >= 0]


def test_without_either_all_stop_it(session: Session, kind: str) -> None:
    breakpoint_of(session, kind)

    assert stops(session, forward=True) == STOPS[kind]
    assert stops(session, forward=False) == STOPS[kind][::-1]


def test_a_condition_must_be_true(session: Session, kind: str) -> None:
    breakpoint_of(session, kind, condition="number > 4")
    # Before the loop there is no `number`: that raises, and counts as true.
    assert stops(session, forward=True) == [each for each in STOPS[kind] if each > 4]
    assert stops(session, forward=False) == [each for each in STOPS[kind] if each > 4][::-1]


def test_passages_are_let_through_in_either_direction(session: Session, kind: str) -> None:
    breakpoint_of(session, kind, condition="globals().get('number', 0) > 0", ignore=1)

    assert stops(session, forward=True) == STOPS[kind][1::2]
    assert stops(session, forward=False) == STOPS[kind][::-1][1::2]


def test_passages_are_let_through_without_a_condition(session: Session, kind: str) -> None:
    breakpoint_of(session, kind, ignore=2)
    # The value also exists when it is bound, before the loop.
    passed = STOPS[kind] if kind != "watch" else [-1, *STOPS[kind]]

    assert stops(session, forward=True) == passed[2::3]
    assert stops(session, forward=False) == [each for each in passed[::-1][2::3] if each >= 0]


def test_only_those_whose_condition_is_true_are_counted(session: Session, kind: str) -> None:
    breakpoint_of(session, kind, condition="globals().get('number', 0) > 2", ignore=1)
    counted = [each for each in STOPS[kind] if each > 2]

    assert stops(session, forward=True) == counted[1::2]
    assert stops(session, forward=False) == counted[::-1][1::2]


def test_a_condition_that_raises_stops_it_and_is_told(session: Session, kind: str) -> None:
    added = breakpoint_of(session, kind, condition="nothing_like_this")

    for goes_on in (session.reverse_go, session.go):
        here = goes_on()
        session.seek("@start")
        assert here.breakpoint == added.number
        assert "its condition raised NameError: name 'nothing_like_this' is not defined" in here.message


def test_a_condition_without_an_answer_stops_it_and_is_told(session: Session, kind: str) -> None:
    added = breakpoint_of(session, kind, condition="__import__('os')._exit(0)")
    here = session.reverse_go()

    assert here.breakpoint == added.number
    assert "its condition cannot be evaluated: it ended the process" in here.message
