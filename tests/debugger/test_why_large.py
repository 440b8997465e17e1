"""`why` of a large container shows the item that was written: its text has only the first ones."""

from collections.abc import Iterator

import pytest

from replaydbg.debugger import Session
from replaydbg.render.texts import why_lines
from tests.harness.recording import at_exception

PROGRAM = """\
def main():
    named = {number: "n" for number in range(300)}
    listed = list(range(300))
    shifted = list(range(300))
    few = [1, 2]
    named[300] = "last"
    listed.append(7)
    shifted.insert(0, 9)
    few.append(3)
    raise ValueError(named, listed, shifted, few)


main()
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    yield from at_exception(PROGRAM, tmp_path_factory.mktemp("program"))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("named", ["  before  (named[300] not set)", "  after   named[300] = 'last'"]),
        ("listed", ["  before  (listed[300] not set)", "  after   listed[300] = 7"]),
        ("few", ["  before  [1, 2]", "  after   [1, 2, 3]"]),
    ],
)
def test_the_item_is_shown_if_the_text_does_not_have_it(expression: str, expected: list[str], session: Session) -> None:
    lines = list(why_lines(session, session.run.why(expression), follow="{name}"))

    found = [line for line in lines if line.startswith(("  before", "  after"))]
    assert found[-2:] == expected


def test_where_all_items_move_the_text_is_shown(session: Session) -> None:
    lines = list(why_lines(session, session.run.why("shifted"), follow="{name}"))

    found = [line for line in lines if line.startswith(("  before", "  after"))]
    assert [line[-12:] for line in found[-2:]] == [" (300 items)", " (301 items)"]
