"""Values whose `__repr__` takes too long, or ends the process, leave the others readable."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.engine.described_values import described_values
from replaydbg.engine.queries import GetItems, GetVariables, ListQuery
from replaydbg.engine.query_results import Variable
from replaydbg.errors import AskFailed
from tests.harness.recording import record_file

PROGRAM = Path(__file__).parents[2] / "fixtures" / "travel" / "values_without_a_text.py"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    recording = record_file(PROGRAM, tmp_path_factory.mktemp("slow"), status=1)
    with Session(recording) as opened:
        opened.seek("@exc")
        yield opened


def without_seconds(variable: Variable) -> str:
    """Return the text of a variable with N for the limit: it depends on how busy the machine is."""
    return re.sub(r"[0-9.]+ s>", "N s>", variable.text)


def test_the_others_have_their_texts(session: Session) -> None:
    texts = {each.name: without_seconds(each) for each in session.ask.variables()}

    assert texts == {
        "numbers": "(1, 2, 3, 4)",
        "by": "0",
        "slow": "<Slow without a text: it took longer than N s>",
        "in_list": "<list without a text: it took longer than N s>",
        "ends": "<Ends without a text: it ended the process in which it was tried>",
        "by_slow": "<dict without a text: it took longer than N s>",
        "hidden": "(counted, classified)",
        "first": "1",
        "second": "2",
        "third": "3",
        "fourth": "4",
    }


def test_parts_of_a_value_have_a_limit_each(session: Session) -> None:
    (part,) = session.ask.parts("in_list")

    assert (part.name, part.type) == ("[0]", "Slow")
    assert without_seconds(part) == "<Slow without a text: it took longer than N s>"
    assert not part.is_shown


def test_a_slow_key_costs_its_own_item(session: Session) -> None:
    slow, other = session.ask.parts("by_slow")

    assert (slow.name, without_seconds(slow)) == ("", "<int without a text: it took longer than N s>")
    assert (other.name, other.text) == ("[2]", "3")


def test_names_and_types_need_no_code_of_the_program(session: Session) -> None:
    counted, classified = session.cursor.ask(GetItems(source="hidden", has_texts=False), seconds=2.0)

    assert (counted.type, counted.parts) == ("SlowToCount", 2)
    assert (classified.type, classified.parts) == ("SlowToClassify", 0)


def test_variables_of_the_module_have_a_limit_each(session: Session) -> None:
    texts = {each.name: without_seconds(each) for each in session.ask.variables(of_module=True)}

    assert texts["SLOW"] == "<Slow without a text: it took longer than N s>"
    assert texts["divided"].startswith("<function divided at ")


def test_the_running_thread_may_be_named(session: Session) -> None:
    lane = session.here.lane

    for frame in (0, 1):
        asked, named = (GetVariables(frame, each, has_texts=False) for each in (None, lane))
        assert session.cursor.ask(asked) == session.cursor.ask(named)


class _Forging:
    """Is too slow for all values at once, and answers about more of them than it was asked for."""

    def ask(
        self, query: ListQuery, *, seconds: float = 5.0, idle: Callable[[], None] | None = None
    ) -> tuple[Variable, ...]:
        if query.has_texts and query.stop > 4:
            raise AskFailed("it took longer")
        count = 9 if query.has_texts else 4
        return tuple(Variable(f"v{index}", "int", "7" if query.has_texts else "", 0) for index in range(count))


def test_an_answer_about_other_values_is_not_used() -> None:
    found = described_values(_Forging(), GetVariables(), lambda: None)

    assert [each.name for each in found] == ["v0", "v1", "v2", "v3"]
    assert {each.text for each in found} == {"<int without a text: the program gave an invalid answer>"}


class _Slow:
    """Is too slow for all values at once, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[ListQuery] = []

    def ask(
        self, query: ListQuery, *, seconds: float = 5.0, idle: Callable[[], None] | None = None
    ) -> tuple[Variable, ...]:
        self.asked.append(query)
        if query.has_texts and query.stop > 4:
            raise AskFailed("it took longer")
        return tuple(Variable(f"v{index}", "int", "7", 0) for index in range(4))[query.start : query.stop]


def test_each_query_is_about_the_same_frame_of_the_same_thread() -> None:
    slow = _Slow()

    found = described_values(slow, GetItems(2, 5, source="x"), lambda: None)

    assert [each.text for each in found] == ["7"] * 4
    assert len(slow.asked) > 2
    assert {(each.frame, each.lane) for each in slow.asked} == {(2, 5)}
