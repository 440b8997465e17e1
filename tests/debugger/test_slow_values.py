"""Values whose `__repr__` takes too long, or ends the process, leave the others readable."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from replaydbg.engine.described_values import described_values
from replaydbg.engine.queries import GetVariables, ListQuery
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


def test_the_others_have_their_texts(session: Session) -> None:
    texts = {each.name: each.text for each in session.ask.variables()}

    assert texts == {
        "numbers": "(1, 2, 3, 4)",
        "by": "0",
        "slow": "<Slow without a text: it took longer than 0.5 s>",
        "in_list": "<list without a text: it took longer than 0.5 s>",
        "ends": "<Ends without a text: it ended the process in which it was tried>",
        "first": "1",
        "second": "2",
        "third": "3",
        "fourth": "4",
    }


def test_parts_of_a_value_too(session: Session) -> None:
    (part,) = session.ask.parts("in_list")

    assert (part.name, part.type) == ("[0]", "Slow")
    assert part.text == "<Slow without a text: it took longer than 0.5 s>"


def test_variables_of_the_module_too(session: Session) -> None:
    names = [each.name for each in session.ask.variables(of_module=True)]

    assert {"os", "Slow", "Ends", "divided"} <= set(names)


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
    assert {each.text for each in found} == {"<int without a text: the answer is about other values>"}
