"""Breakpoints stop at the hits that a rule takes, counted over the whole run and the same in both directions."""

from collections.abc import Iterator

import pytest

from replaydbg.debugger import Session
from replaydbg.debugger.breakpoints import parse_rule
from replaydbg.debugger.session_results import Breakpoint
from replaydbg.errors import UsageError
from tests.harness.recording import record_file
from tests.harness.typed import TRAVEL, Typed

PROGRAM = TRAVEL / "raises_in_a_loop.py"
RULES = ["%1", "%2", "%3", "%99", "==1", "==4", "==99", "4", ">3", ">=3", "<3", "<=3", "> 99"]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with Session(record_file(PROGRAM, tmp_path_factory.mktemp("rules"))) as session:
        yield session


@pytest.fixture
def session(opened: Session) -> Iterator[Session]:
    yield opened
    for point in opened.breakpoints:
        opened.breakpoints.remove(point.number)


def placed(session: Session, kind: str, **fields: object) -> Breakpoint:
    file = session.sources.file_named(PROGRAM.name)
    place = Breakpoint(0, exception="ValueError") if kind == "exception" else Breakpoint(0, file=file, line=10)
    return session.breakpoints.change(session.breakpoints.add(place).number, **fields)


def stops(session: Session, *, forward: bool) -> list[int]:
    """Return the lines of the run at which the session stops, in order."""
    session.seek("@start" if forward else "@end")
    found = []
    while (session.go() if forward else session.reverse_go()).breakpoint:
        found.append(session.here.count)
    return found if forward else found[::-1]


@pytest.mark.parametrize("kind", ["line", "exception"])
@pytest.mark.parametrize("condition", ["", "number > 4"])
def test_both_directions_stop_where_counting_by_hand_does(session: Session, kind: str, condition: str) -> None:
    point = placed(session, kind, condition=condition)
    every = stops(session, forward=True)
    assert len(every) >= 3

    for text in RULES:
        rule = parse_rule(text)
        session.breakpoints.change(point.number, hits=text)
        wanted = [count for hit, count in enumerate(every, 1) if rule.takes(hit)]
        assert stops(session, forward=True) == wanted, text
        assert stops(session, forward=False) == wanted, text


def test_hits_are_counted_from_the_start_wherever_the_search_begins(session: Session) -> None:
    placed(session, "line", hits="%2")
    every = stops(session, forward=True)

    session.seek(every[0] + 1)

    assert session.go().count == every[1]
    assert session.here.message == "hit 4"


def test_ignored_hits_are_those_that_the_rule_takes(session: Session) -> None:
    point = placed(session, "line", hits="%2")
    every = stops(session, forward=True)

    session.breakpoints.change(point.number, ignore=1)

    session.seek("@start")
    assert session.go().count == every[1]
    session.seek("@end")
    assert session.reverse_go().count == every[-2]


def test_with_others_the_nearest_stops(session: Session) -> None:
    placed(session, "line", hits="==3")
    (third,) = stops(session, forward=True)
    placed(session, "exception")

    session.seek("@start")
    found = []
    while session.go().breakpoint:
        found.append((session.here.breakpoint, session.here.count))

    numbers = sorted(each.number for each in session.breakpoints)
    assert (numbers[0], third) in found
    assert [count for _, count in found] == sorted(count for _, count in found)


def test_another_condition_is_counted_anew(session: Session) -> None:
    point = placed(session, "line", hits="==1", condition="number > 4")
    before = stops(session, forward=True)

    session.breakpoints.change(point.number, condition="")

    assert stops(session, forward=True) < before


@pytest.mark.parametrize("text", ["%0", "0", "%", "three", "-1", "%3 4", "=3", "%1.5"])
def test_other_rules_are_refused(session: Session, text: str) -> None:
    with pytest.raises(UsageError, match="A rule for hits is %N"):
        placed(session, "line", hits=text)


def test_changes_of_a_value_have_no_rule(session: Session) -> None:
    session.seek("@end")
    number = session.run.watch("total").number

    with pytest.raises(UsageError, match="not at changes of a value"):
        session.breakpoints.change(number, hits="%2")


def test_the_prompt(session: Session) -> None:
    typed = Typed.at("@start", session)

    assert "raises_in_a_loop.py:10 %3 if number > 1\n" in typed("break raises_in_a_loop.py:10 %3 if number > 1")
    (number,) = (each.number for each in session.breakpoints)
    assert "hit 3" in typed("continue")
    assert "raises_in_a_loop.py:10 ==2 if number > 1\n" in typed(f"hits {number} 2")
    assert "A rule for hits" in typed(f"hits {number} x")
    assert "raises_in_a_loop.py:10 if number > 1\n" in typed(f"hits {number}")
    assert "usage: hits NUMBER [RULE]" in typed("hits")


# ---- exceptions of the program's own code ----


@pytest.fixture(scope="module")
def threads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with Session(record_file(TRAVEL / "dies_in_a_thread.py", tmp_path_factory.mktemp("own"))) as session:
        yield session


def test_catch_own_leaves_libraries_out(threads: Session) -> None:
    typed = Typed.at("@start", threads)

    printed = typed("catch own")
    assert "own exception *" in printed
    assert "Raised once in the whole run, by your own code." in printed
    assert "RuntimeError: job 7" in typed("continue")
    assert "the program ended" in typed("continue")
    assert "No KeyError was raised in this run by your own code." in typed("catch own KeyError")
    assert "including libraries and imports" in typed("catch KeyError")


def test_the_next_landmark_is_far_behind_those_of_libraries(threads: Session) -> None:
    typed = Typed.at("@start", threads)

    assert "RuntimeError" in typed("landmark next", "info exceptions")
    assert "No later exception of your code or mark." in typed("landmark next")
